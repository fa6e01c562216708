#include "music/text_encoder.hpp"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/tests/expect_error.hpp"
#include "formats/safetensors.hpp"
#include "music/checkpoint.hpp"
#include "music/text_format.hpp"

namespace assay::music {
namespace {

const std::filesystem::path kData = ASSAY_TEST_DATA;

nlohmann::json recorded() {
  return nlohmann::json::parse(read_text_file(kData / "ace-tiny.fixture.json"))["cases"];
}

TEST(TextEncoder, TextsBecomeTheRecordedIds) {
  const text::Tokenizer tokenizer = Checkpoint::open(kData / "ace-tiny").tokenizer();
  for (const auto& record : recorded()) {
    EXPECT_EQ(encode_text(tokenizer, record["text"].get<std::string>(), kMaxPromptTokens, "prompt"),
              record["text_ids"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(encode_text(tokenizer, record["lyric_text"].get<std::string>(), kMaxLyricTokens, "lyrics"),
              record["lyric_ids"].get<std::vector<std::int32_t>>());
  }
  expect_error(ErrorKind::limit_exceeded, "lyrics",
               [&] { encode_text(tokenizer, std::string(5000, 'x'), 64, "lyrics"); });
  expect_error(ErrorKind::invalid_argument, "prompt", [&] { encode_text(tokenizer, "\xff", 64, "prompt"); });
}

TEST(TextEncoder, HiddenStatesAreTheOracles) {
  const Checkpoint checkpoint = Checkpoint::open(kData / "ace-tiny");
  const auto ids = recorded()[0]["text_ids"].get<std::vector<std::int32_t>>();
  const auto fixture = formats::open_safetensors(kData / "ace-tiny.fixture.safetensors");
  const std::vector<std::uint64_t> shape = {ids.size(), 128};
  const std::vector<float> expected = formats::read_tensor(*fixture, "a.text_hidden", shape);
  device::ThreadPool threads(2);
  const ops::Selection selection = ops::select_forms(ops::Precision::fp32);
  TextEncoder encoder(checkpoint.text_encoder(), checkpoint.tensors(Part::text_encoder), selection, threads);
  const std::vector<float> hidden = encoder.hidden_states(ids);
  ASSERT_EQ(hidden.size(), expected.size());
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    error += std::pow(hidden[i] - expected[i], 2);
    power += std::pow(expected[i], 2);
  }
  EXPECT_LT(std::sqrt(error / power), 1e-5);
  std::stop_source stopped;
  stopped.request_stop();
  expect_error(ErrorKind::cancelled, "", [&] { encoder.hidden_states(ids, stopped.get_token()); });
}

TEST(TextEncoder, EmbeddingRowsAreTheTables) {
  const auto source = Checkpoint::open(kData / "ace-tiny").tensors(Part::text_encoder);
  const std::vector<std::int32_t> ids = {5, 0, 5};
  const std::vector<float> rows = embedding_rows(*source, ids, 128);
  std::vector<float> table(128);
  source->read_rows("embed_tokens.weight", 5, 1, table);
  EXPECT_TRUE(std::equal(table.begin(), table.end(), rows.begin()));
  EXPECT_TRUE(std::equal(table.begin(), table.end(), rows.begin() + 256));
  const std::vector<std::int32_t> outside = {1536};
  expect_error(ErrorKind::mismatch, "1536", [&] { embedding_rows(*source, outside, 128); });
}

}  // namespace
}  // namespace assay::music
