#include "text/tokenizer.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/tests/expect_error.hpp"
#include "text/nfc.hpp"
#include "text/tests/random_text.hpp"
#include "text/tests/test_tokenizers.hpp"

namespace assay::text {
namespace {

using Ids = std::vector<std::int32_t>;

std::string normal(std::string_view text) {
  std::string buffer;
  return std::string(to_nfc(text, buffer));
}

Ids bytes_of(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

/// Merges by definition: look at all pairs, do the best, begin again.
Ids merged_by_definition(const TokenizerParts& parts, std::string_view piece) {
  std::map<std::string, std::int32_t> ids(parts.vocabulary.begin(), parts.vocabulary.end());
  std::vector<std::string> symbols;
  for (const char c : piece) {
    symbols.emplace_back();
    append_utf8(byte_level_alphabet()[static_cast<unsigned char>(c)], symbols.back());
  }
  while (true) {
    std::size_t best = parts.merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found =
          std::find(parts.merges.begin(), parts.merges.end(), std::pair(symbols[i], symbols[i + 1]));
      const auto rank = static_cast<std::size_t>(found - parts.merges.begin());
      if (rank < best) best = rank, at = i;
    }
    if (best == parts.merges.size()) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Ids result;
  for (const auto& symbol : symbols) result.push_back(ids.at(symbol));
  return result;
}

TokenizerParts random_merges(RandomText& random, std::size_t count) {
  TokenizerParts parts = byte_parts();
  std::vector<std::string> tokens = {"a", "b", "c"};
  while (parts.merges.size() < count) {
    const std::string left = tokens[random.below(tokens.size())];
    const std::string right = tokens[random.below(tokens.size())];
    if (std::find(tokens.begin(), tokens.end(), left + right) != tokens.end()) continue;
    if (left.size() + right.size() > 12) continue;
    tokens.push_back(left + right);
    add_merge(parts, left, right);
  }
  std::shuffle(parts.merges.begin(), parts.merges.end(), std::mt19937(7));
  return parts;
}

TEST(Merging, ShortAndLongPiecesFollowTheDefinition) {
  RandomText random(4);
  for (int round = 0; round < 20; ++round) {
    const TokenizerParts parts = random_merges(random, 5 + random.below(40));
    const Tokenizer tokenizer = Tokenizer::from_parts(parts, "random");
    for (const std::size_t length :
         std::initializer_list<std::size_t>{1, 2, 3, 7, 30, 31, 32, 47, 48, 49, 50, 97, 300}) {
      std::string piece;
      for (std::size_t i = 0; i < length; ++i) piece.push_back("abc"[random.below(3)]);
      const Ids expected = merged_by_definition(parts, piece);
      EXPECT_EQ(tokenizer.encode(piece), expected) << piece;
      EXPECT_EQ(tokenizer.encode(piece), expected) << "from the cache: " << piece;
    }
  }
}

TEST(Merging, EqualRanksGoLeftmostFirst) {
  TokenizerParts parts = byte_parts();
  add_merge(parts, "a", "a");
  const Tokenizer tokenizer = Tokenizer::from_parts(parts, "aa");
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{256, 'a'}));
  const Ids odd = tokenizer.encode(std::string(101, 'a'));
  EXPECT_EQ(odd.size(), 51u);
  EXPECT_EQ(odd.back(), 'a');
}

TEST(Merging, IgnoreMergesTakesAWholePieceOfTheVocabulary) {
  TokenizerParts parts = byte_parts();
  add_merge(parts, "b", "c");
  parts.vocabulary.emplace_back("abc", 257);
  EXPECT_EQ(Tokenizer::from_parts(parts, "merges").encode("abc"), (Ids{'a', 256}));
  parts.ignore_merges = true;
  EXPECT_EQ(Tokenizer::from_parts(parts, "whole").encode("abc"), (Ids{257}));
}

TEST(Encoding, DecodesToTheNormalTextWhateverTheText) {
  RandomText random(5);
  for (const char* name : {"hybrid", "dense"}) {
    const Tokenizer tokenizer = fixture_tokenizer(name);
    for (int i = 0; i < 1000; ++i) {
      const std::string text = random.text(40);
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), normal(text));
    }
  }
}

TEST(Encoding, NothingGivesNoIds) {
  EXPECT_TRUE(fixture_tokenizer("dense").encode("").empty());
}

TEST(Encoding, WithoutNfcTheBytesStay) {
  TokenizerParts parts = byte_parts();
  parts.nfc = false;
  EXPECT_EQ(Tokenizer::from_parts(parts, "plain").encode("e\u0301"), bytes_of("e\u0301"));
  EXPECT_EQ(Tokenizer::from_parts(byte_parts(), "nfc").encode("e\u0301"), bytes_of("é"));
}

TEST(Encoding, InvalidUtf8IsRefusedWithItsOffset) {
  const Tokenizer tokenizer = fixture_tokenizer("hybrid");
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe4\xb8"}) {
    expect_error(ErrorKind::invalid_argument, "byte 7",
                 [&] { tokenizer.encode(std::string("<|im_st") + bad); });
  }
}

TEST(Encoding, SeveralThreadsGetTheIdsOfOne) {
  const Tokenizer tokenizer = fixture_tokenizer("hybrid");
  RandomText random(6);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 200; ++i) {
    texts.push_back(random.text(60) + "the quick brown fox");
    expected.push_back(tokenizer.encode(texts.back()));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t at = (i * 7 + t * 50) % texts.size();
        wrong[t] += tokenizer.encode(texts[at]) == expected[at] ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Encoding, MegabytesOfOneThingNeitherFailNorHang) {
  constexpr std::size_t kSize = 2'000'000;
  const Tokenizer tokenizer = fixture_tokenizer("hybrid");
  for (const char* const unit : {"a", " ", "\n", "\u0301", " \n", "<", "1"}) {
    std::string text;
    while (text.size() < kSize) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), normal(text));
  }
}

TokenizerParts with_added(std::vector<TokenizerParts::Added> added) {
  TokenizerParts parts = byte_parts();
  for (auto& token : added) token.id = 1000 + static_cast<std::int32_t>(&token - added.data());
  parts.added = std::move(added);
  return parts;
}

TEST(AddedTokens, TheLeftmostThenTheLongestWins) {
  const Tokenizer tokenizer = Tokenizer::from_parts(
      with_added({{.content = "<a>"}, {.content = "<a><b>"}, {.content = "a><"}, {.content = "<b>c"}}),
      "added");
  EXPECT_EQ(tokenizer.encode("<a><b>c"), (Ids{1001, 'c'}));
  EXPECT_EQ(tokenizer.encode("x<a><b"), (Ids{'x', 1000, '<', 'b'}));
  EXPECT_EQ(tokenizer.encode("a><b>c"), (Ids{1002, 'b', '>', 'c'}));
  EXPECT_EQ(tokenizer.encode("<<b>c<a"), (Ids{'<', 1003, '<', 'a'}));
}

TEST(AddedTokens, OnlyNormalizedOnesMatchAfterNfc) {
  const Tokenizer tokenizer = Tokenizer::from_parts(with_added({{.content = "né"},
                                                                {.content = "\u212b", .normalized = true},
                                                                {.content = "o\u0308", .normalized = true}}),
                                                    "added");
  EXPECT_EQ(tokenizer.encode("né"), (Ids{1000}));
  EXPECT_EQ(tokenizer.encode("ne\u0301"), bytes_of("né"));
  EXPECT_EQ(tokenizer.encode("A\u030aö"), (Ids{1001, 1002}));
}

TEST(AddedTokens, NfcDoesNotReachAcrossAToken) {
  const Tokenizer tokenizer = Tokenizer::from_parts(with_added({{.content = "<x>"}}), "added");
  Ids expected = bytes_of("e");
  expected.push_back(1000);
  for (const auto id : bytes_of("\u0301")) expected.push_back(id);
  EXPECT_EQ(tokenizer.encode("e<x>\u0301"), expected);
}

TEST(AddedTokens, ASingleWordStandsAlone) {
  const Tokenizer tokenizer =
      Tokenizer::from_parts(with_added({{.content = "dog", .single_word = true}}), "added");
  EXPECT_EQ(tokenizer.encode("dog dog"), (Ids{1000, ' ', 1000}));
  for (const char* text : {"dogs", "_dog", "dog1", "\u0301dog", "édog", "dog\u200d"}) {
    EXPECT_EQ(tokenizer.encode(text), bytes_of(text)) << text;
  }
  EXPECT_EQ(tokenizer.encode("dog½"), (Ids{1000, 0xc2, 0xbd})) << "a fraction is no word character";
}

TEST(AddedTokens, StrippingTakesTheWhiteSpaceBeside) {
  const Tokenizer left = Tokenizer::from_parts(with_added({{.content = "<l>", .lstrip = true}}), "added");
  EXPECT_EQ(left.encode("a \n\u3000<l> b"), (Ids{'a', 1000, ' ', 'b'}));
  EXPECT_EQ(left.encode(" <l> <l>"), (Ids{1000, 1000}));
  const Tokenizer right = Tokenizer::from_parts(with_added({{.content = "<r>", .rstrip = true}}), "added");
  EXPECT_EQ(right.encode("a <r> \n\u3000b"), (Ids{'a', ' ', 1000, 'b'}));
  const Tokenizer both =
      Tokenizer::from_parts(with_added({{.content = "<b>", .lstrip = true, .rstrip = true}}), "added");
  EXPECT_EQ(both.encode(" <b>  <b> "), (Ids{1000, 1000}));
}

TEST(AddedTokens, ATextOfStrippedSpacesStaysLinear) {
  const Tokenizer tokenizer =
      Tokenizer::from_parts(with_added({{.content = " ", .lstrip = true, .rstrip = true}}), "added");
  EXPECT_FALSE(tokenizer.encode(std::string(1'000'000, ' ')).empty());
}

TEST(TokenIds, AreFoundByTextAndBounded) {
  const Tokenizer tokenizer = fixture_tokenizer("hybrid");
  EXPECT_EQ(tokenizer.token_id("<|fim_prefix|>"), 1531);
  EXPECT_EQ(tokenizer.token_id("!"), 0);
  EXPECT_EQ(tokenizer.token_id("Ġ"), tokenizer.encode(" ").at(0));
  EXPECT_FALSE(tokenizer.token_id("no such token"));
  EXPECT_FALSE(tokenizer.token_id(""));
  EXPECT_EQ(tokenizer.id_limit(), 1536u);
  EXPECT_EQ(tokenizer.decode(Ids{1531, 1535}), "<|fim_prefix|><|fim_suffix|>");
}

TEST(Decoding, AnIdThatNoTokenHasIsRefused) {
  TokenizerParts parts = byte_parts();
  parts.vocabulary.emplace_back("far", 300);
  const Tokenizer tokenizer = Tokenizer::from_parts(parts, "gap");
  for (const std::int32_t id : {-1, 256, 299, 301, 0x7fffffff}) {
    expect_error(ErrorKind::invalid_argument, "ids[1]", [&] { tokenizer.decode(Ids{'a', id}); });
  }
  EXPECT_EQ(tokenizer.decode(Ids{300}), "far");
}

struct BadParts {
  const char* kind;
  const char* message;
  void (*spoil)(TokenizerParts&);
};

class MalformedParts : public testing::TestWithParam<BadParts> {};

TEST_P(MalformedParts, AreRefusedByName) {
  TokenizerParts parts = byte_parts();
  GetParam().spoil(parts);
  expect_error(ErrorKind::malformed, GetParam().message, [&] { Tokenizer::from_parts(parts, "file"); });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, MalformedParts,
    testing::Values(
        BadParts{"id_twice", "id 5", [](TokenizerParts& p) { p.vocabulary.emplace_back("zz", 5); }},
        BadParts{"token_twice", "\"a\"", [](TokenizerParts& p) { p.vocabulary.emplace_back("a", 999); }},
        BadParts{"negative_id", "id -1", [](TokenizerParts& p) { p.vocabulary.emplace_back("zz", -1); }},
        BadParts{"absurd_id", "2147483647",
                 [](TokenizerParts& p) { p.vocabulary.emplace_back("zz", 0x7fffffff); }},
        BadParts{"empty_token", "empty token", [](TokenizerParts& p) { p.vocabulary.emplace_back("", 999); }},
        BadParts{"absurd_token", "100000 bytes",
                 [](TokenizerParts& p) { p.vocabulary.emplace_back(std::string(100'000, 'z'), 999); }},
        BadParts{"token_no_utf8", "not UTF-8",
                 [](TokenizerParts& p) { p.vocabulary.emplace_back("z\xff", 999); }},
        BadParts{"byte_missing", "byte 0xff", [](TokenizerParts& p) { p.vocabulary.pop_back(); }},
        BadParts{"no_vocabulary", "byte 0x00", [](TokenizerParts& p) { p.vocabulary.clear(); }},
        BadParts{"merge_of_unknown", "merges[0]",
                 [](TokenizerParts& p) { p.merges.emplace_back("zz", "a"); }},
        BadParts{"merge_to_unknown", "\"ab\"", [](TokenizerParts& p) { p.merges.emplace_back("a", "b"); }},
        BadParts{"merge_of_nothing", "merges[0]", [](TokenizerParts& p) { p.merges.emplace_back("", "a"); }},
        BadParts{"merge_twice", "merges[1]",
                 [](TokenizerParts& p) {
                   add_merge(p, "a", "b");
                   p.merges.emplace_back("a", "b");
                 }},
        BadParts{"added_empty", "added_tokens[0]",
                 [](TokenizerParts& p) { p.added.push_back({.content = "", .id = 999}); }},
        BadParts{"added_twice", "added_tokens[1]",
                 [](TokenizerParts& p) {
                   p.added.push_back({.content = "<x>", .id = 999});
                   p.added.push_back({.content = "<x>", .id = 999});
                 }},
        BadParts{"added_twice_after_nfc", "added_tokens[1]",
                 [](TokenizerParts& p) {
                   p.added.push_back({.content = "<é>", .id = 998, .normalized = true});
                   p.added.push_back({.content = "<e\u0301>", .id = 999, .normalized = true});
                 }},
        BadParts{"added_id_taken", "id 7",
                 [](TokenizerParts& p) { p.added.push_back({.content = "<x>", .id = 7}); }},
        BadParts{"added_id_differs", "added_tokens[0]",
                 [](TokenizerParts& p) { p.added.push_back({.content = "a", .id = 999}); }},
        BadParts{"added_id_negative", "added_tokens[0]",
                 [](TokenizerParts& p) { p.added.push_back({.content = "<x>", .id = -5}); }},
        BadParts{
            "added_absurd", "added_tokens[0]",
            [](TokenizerParts& p) { p.added.push_back({.content = std::string(4000, 'x'), .id = 999}); }},
        BadParts{"added_no_utf8", "added_tokens[0]",
                 [](TokenizerParts& p) { p.added.push_back({.content = "\xc3", .id = 999}); }}),
    [](const auto& info) { return info.param.kind; });

void expect_same_within_limits(const Tokenizer& tokenizer, const std::string& text) {
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.encode_within(text, ids.size()), ids) << text;
  EXPECT_EQ(tokenizer.encode_within(text, ids.size() + 1), ids) << text;
  if (ids.empty()) return;
  for (const std::size_t limit : {std::size_t{0}, ids.size() / 2, ids.size() - 1}) {
    EXPECT_EQ(tokenizer.encode_within(text, limit), std::nullopt) << text;
  }
}

TEST(Within, ALimitGivesTheIdsOfTheWholeTextOrNone) {
  RandomText random(17);
  for (int round = 0; round < 50; ++round) {
    TokenizerParts parts = random_merges(random, 5 + random.below(40));
    parts.added = {{.content = "<x>", .id = 1000, .special = true},
                   {.content = "b?", .id = 1001, .normalized = true},
                   {.content = "<y>", .id = 1002, .lstrip = true, .rstrip = true}};
    const Tokenizer tokenizer = Tokenizer::from_parts(std::move(parts), "random");
    std::string text;
    for (int piece = 0; piece < 30; ++piece) {
      constexpr const char* kAdded[] = {"<x>", "b?", "   <y>   "};
      text += random.below(4) == 0 ? kAdded[random.below(3)]
                                   : std::string(1 + random.below(60), "abc "[random.below(4)]);
    }
    expect_same_within_limits(tokenizer, text);
  }
  for (const char* name : {"hybrid", "dense"}) {
    const Tokenizer tokenizer = fixture_tokenizer(name);
    for (int i = 0; i < 200; ++i) expect_same_within_limits(tokenizer, random.text(60));
  }
}

}  // namespace
}  // namespace assay::text
