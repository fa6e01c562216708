#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/tests/expect_error.hpp"
#include "text/tests/test_tokenizers.hpp"

namespace assay::text {
namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

json good_file() {
  json file = json::parse(fixture_tokenizer_json("hybrid"));
  return file;
}

std::vector<std::int32_t> encode_with(const json& file, std::string_view text) {
  return Tokenizer::from_json(file.dump(), "file").encode(text);
}

const char* const kSample = "Naïve worker's review: <|im_start|>e\u0301 failing\n\n  42";

TEST(TokenizerJson, MergesAsPairsOrAsLinesMeanTheSame) {
  json file = good_file();
  const auto expected = encode_with(file, kSample);
  json lines = json::array({"#version: 0.2"});
  for (const auto& merge : file["model"]["merges"]) {
    lines.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  file["model"]["merges"] = lines;
  EXPECT_EQ(encode_with(file, kSample), expected);
}

TEST(TokenizerJson, TokensBehindTheTextAreReadWhereAskedFor) {
  json file = good_file();
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json end = {{"SpecialToken", {{"id", "<|im_start|>"}, {"type_id", 0}}}};
  const auto with = [&](const json& single) {
    file["post_processor"] = {{"type", "Sequence"},
                              {"processors",
                               {{{"type", "ByteLevel"}},
                                {{"type", "TemplateProcessing"},
                                 {"single", single},
                                 {"pair", nullptr},
                                 {"special_tokens", nullptr}}}}};
    return Tokenizer::from_json(file.dump(), "file", TextTemplate::read);
  };
  const Tokenizer tokenizer = with(json::array({text, end}));
  ASSERT_EQ(tokenizer.appended().size(), 1u);
  EXPECT_EQ(tokenizer.appended()[0], tokenizer.token_id("<|im_start|>"));
  EXPECT_EQ(tokenizer.encode(kSample), encode_with(good_file(), kSample)) << "encode leaves them out";
  expect_error(ErrorKind::unsupported, "with nothing put around it",
               [&] { Tokenizer::from_json(file.dump(), "file"); });
  EXPECT_TRUE(with(json::array({text})).appended().empty());
  expect_error(ErrorKind::unsupported, "the text first", [&] { with(json::array({end, text})); });
  json unknown = end;
  unknown["SpecialToken"]["id"] = "<|none|>";
  expect_error(ErrorKind::malformed, "<|none|>", [&] { with(json::array({text, unknown})); });
}

TEST(TokenizerJson, VariantsThatMeanTheSameLoad) {
  const auto expected = encode_with(good_file(), kSample);
  const auto same = [&](const char* pointer, const json& value) {
    json file = good_file();
    file[Pointer(pointer)] = value;
    EXPECT_EQ(encode_with(file, kSample), expected) << pointer << ' ' << value;
  };
  same("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}});
  same("/post_processor", nullptr);
  same("/post_processor", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}});
  same("/post_processor", {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}}}});
  same("/decoder", nullptr);
  same("/model/continuing_subword_prefix", "");
  same("/model/end_of_word_suffix", "");
  same("/model/dropout", 0.0);
  same("/pre_tokenizer/pretokenizers/1/trim_offsets", false);
  json bare = good_file();
  for (const char* name : {"version", "truncation", "padding", "decoder", "post_processor"}) bare.erase(name);
  for (const char* name : {"dropout", "unk_token", "fuse_unk", "byte_fallback", "ignore_merges"}) {
    bare["model"].erase(name);
  }
  EXPECT_EQ(encode_with(bare, kSample), expected);
}

TEST(TokenizerJson, WithoutANormalizerNothingIsNormalized) {
  json file = good_file();
  file["normalizer"] = nullptr;
  EXPECT_NE(encode_with(file, "e\u0301"), encode_with(good_file(), "e\u0301"));
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
  EXPECT_NE(encode_with(file, "e\u0301"), encode_with(good_file(), "e\u0301"));
}

struct BadField {
  const char* pointer;
  json value;
  ErrorKind kind;
  const char* message;
};

std::ostream& operator<<(std::ostream& out, const BadField& field) {
  return out << field.pointer << " = " << field.value;
}

class BadFields : public testing::TestWithParam<BadField> {};

TEST_P(BadFields, AreRefusedByName) {
  json file = good_file();
  const BadField& field = GetParam();
  file[Pointer(field.pointer)] = field.value;
  expect_error(field.kind, field.message, [&] { Tokenizer::from_json(file.dump(), "dir/tokenizer.json"); });
  expect_error(field.kind, "dir/tokenizer.json",
               [&] { Tokenizer::from_json(file.dump(), "dir/tokenizer.json"); });
}

constexpr auto kMalformed = ErrorKind::malformed;
constexpr auto kUnsupported = ErrorKind::unsupported;

INSTANTIATE_TEST_SUITE_P(
    OfAnotherKind, BadFields,
    testing::Values(
        BadField{"/version", "2.0", kUnsupported, "version"},
        BadField{"/truncation", {{"max_length", 512}}, kUnsupported, "truncation"},
        BadField{"/padding", {{"strategy", "BatchLongest"}}, kUnsupported, "padding"},
        BadField{"/novelty", 1, kUnsupported, "novelty"},
        BadField{"/normalizer/type", "NFKC", kUnsupported, "NFKC"},
        BadField{"/normalizer",
                 {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}},
                 kUnsupported,
                 "normalizer.normalizers[0].type"},
        BadField{"/pre_tokenizer", nullptr, kUnsupported, "pre_tokenizer"},
        BadField{"/pre_tokenizer/type", "Metaspace", kUnsupported, "pre_tokenizer.type"},
        BadField{"/pre_tokenizer/pretokenizers/2", {{"type", "Digits"}}, kUnsupported, "3 steps"},
        BadField{"/pre_tokenizer/pretokenizers/0/type", "Digits", kUnsupported, "pretokenizers[0].type"},
        BadField{"/pre_tokenizer/pretokenizers/0/behavior", "Removed", kUnsupported,
                 "pretokenizers[0].behavior"},
        BadField{"/pre_tokenizer/pretokenizers/0/invert", true, kUnsupported, "pretokenizers[0].invert"},
        BadField{"/pre_tokenizer/pretokenizers/0/pattern", {{"String", " "}}, kUnsupported, "pattern"},
        BadField{"/pre_tokenizer/pretokenizers/0/pattern/Regex", "(?<=a)b", kUnsupported, "split pattern"},
        BadField{"/pre_tokenizer/pretokenizers/1/type", "Whitespace", kUnsupported, "pretokenizers[1].type"},
        BadField{"/pre_tokenizer/pretokenizers/1/add_prefix_space", true, kUnsupported, "add_prefix_space"},
        BadField{"/pre_tokenizer/pretokenizers/1/use_regex", true, kUnsupported, "use_regex"},
        BadField{"/post_processor/single",
                 {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}},
                 kUnsupported,
                 "post_processor.single"},
        BadField{"/post_processor/type", "BertProcessing", kUnsupported, "BertProcessing"},
        BadField{"/decoder/type", "WordPiece", kUnsupported, "decoder.type"},
        BadField{"/model/type", "Unigram", kUnsupported, "model.type"},
        BadField{"/model/dropout", 0.1, kUnsupported, "model.dropout"},
        BadField{"/model/unk_token", "<unk>", kUnsupported, "model.unk_token"},
        BadField{"/model/continuing_subword_prefix", "##", kUnsupported, "continuing_subword_prefix"},
        BadField{"/model/end_of_word_suffix", "</w>", kUnsupported, "end_of_word_suffix"},
        BadField{"/model/fuse_unk", true, kUnsupported, "model.fuse_unk"},
        BadField{"/model/byte_fallback", true, kUnsupported, "model.byte_fallback"},
        BadField{"/model/novelty", true, kUnsupported, "model.\"novelty\""}));

INSTANTIATE_TEST_SUITE_P(
    Malformed, BadFields,
    testing::Values(BadField{"/model", 3, kMalformed, "model"},
                    BadField{"/model/vocab", json::array(), kMalformed, "vocab"},
                    BadField{"/model/vocab/a", "x", kMalformed, "model.vocab[\"a\"]"},
                    BadField{"/model/vocab/a", -1, kMalformed, "model.vocab[\"a\"]"},
                    BadField{"/model/vocab/a", 1e30, kMalformed, "model.vocab[\"a\"]"},
                    BadField{"/model/vocab/a", 4294967296, kMalformed, "model.vocab[\"a\"]"},
                    BadField{"/model/vocab/a", 1.5, kMalformed, "model.vocab[\"a\"]"},
                    BadField{"/model/vocab/a", 7, kMalformed, "id "},
                    BadField{"/model/merges", 0, kMalformed, "model.merges"},
                    BadField{"/model/merges/5", {"a"}, kMalformed, "model.merges[5]"},
                    BadField{"/model/merges/5", {"a", "b", "c"}, kMalformed, "model.merges[5]"},
                    BadField{"/model/merges/5", {"a", 1}, kMalformed, "model.merges[5]"},
                    BadField{"/model/merges/5", "a b", kMalformed, "model.merges[5]"},
                    BadField{"/model/merges", {"a b c"}, kMalformed, "model.merges[0]"},
                    BadField{"/model/merges", {"ab"}, kMalformed, "model.merges[0]"},
                    BadField{"/model/merges/5", {"nowhere", "b"}, kMalformed, "merges[5]"},
                    BadField{"/model/ignore_merges", "yes", kMalformed, "model.ignore_merges"},
                    BadField{"/added_tokens", 1, kMalformed, "added_tokens"},
                    BadField{"/added_tokens/0", 1, kMalformed, "added_tokens[0]"},
                    BadField{"/added_tokens/0", {{"id", 1528}}, kMalformed, "added_tokens[0]"},
                    BadField{"/added_tokens/1/id", 1528, kMalformed, "added_tokens[1]"},
                    BadField{"/added_tokens/1/id", 5000, kMalformed, "added_tokens[1].id"},
                    BadField{"/added_tokens/1/id", -3, kMalformed, "added_tokens[1].id"},
                    BadField{"/added_tokens/1/content", "<|endoftext|>", kMalformed, "added_tokens[1]"},
                    BadField{"/added_tokens/1/content", 5, kMalformed, "added_tokens[1].content"},
                    BadField{"/added_tokens/1/lstrip", 0, kMalformed, "added_tokens[1].lstrip"},
                    BadField{"/pre_tokenizer/pretokenizers", 1, kMalformed, "pretokenizers"},
                    BadField{"/normalizer", 1, kMalformed, "normalizer"}));

class MissingFields : public testing::TestWithParam<const char*> {};

TEST_P(MissingFields, AreNamed) {
  json file = good_file();
  const Pointer pointer(GetParam());
  file[pointer.parent_pointer()].erase(pointer.back());
  expect_error(kMalformed, pointer.back(), [&] { Tokenizer::from_json(file.dump(), "file"); });
}

INSTANTIATE_TEST_SUITE_P(Each, MissingFields,
                         testing::Values("/model", "/pre_tokenizer", "/model/vocab", "/model/merges",
                                         "/model/type", "/pre_tokenizer/pretokenizers/0/behavior",
                                         "/pre_tokenizer/pretokenizers/1/use_regex",
                                         "/added_tokens/0/normalized"));

TEST(TokenizerJson, BrokenTextIsRefused) {
  const std::string whole = fixture_tokenizer_json("dense");
  for (const std::string& broken : {std::string(), std::string("null"), std::string("[]"), std::string("{"),
                                    std::string("\xff"), whole + "x", whole.substr(0, whole.size() / 2),
                                    std::string(100'000, '['), std::string("{\"version\": \"\\ud800\"}")}) {
    expect_error(kMalformed, "file", [&] { Tokenizer::from_json(broken, "file"); });
  }
}

TEST(TokenizerJson, AFieldTwiceIsRefused) {
  std::string file = good_file().dump();
  file.insert(1, "\"decoder\": null, ");
  expect_error(kMalformed, "decoder", [&] { Tokenizer::from_json(file, "file"); });
}

TEST(TokenizerJson, ATokenTwiceIsRefused) {
  json plain = good_file();
  plain["added_tokens"] = json::array();
  std::string file = plain.dump();
  const std::string vocab = "\"vocab\":{";
  file.insert(file.find(vocab) + vocab.size(), "\"a\": 1600, ");
  expect_error(kMalformed, "\"a\"", [&] { Tokenizer::from_json(file, "file"); });
}

}  // namespace
}  // namespace assay::text
