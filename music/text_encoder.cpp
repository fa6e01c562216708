#include "music/text_encoder.hpp"

#include <atomic>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::music {

std::vector<std::int32_t> encode_text(const text::Tokenizer& tokenizer, std::string_view text,
                                      std::size_t limit, const std::string& what) {
  std::optional<std::vector<std::int32_t>> ids;
  try {
    ids = tokenizer.encode_within(text, limit);
  } catch (const Error& error) {
    Error::Parts parts = error.parts();
    parts.where = what;
    throw Error(error.kind(), std::move(parts));
  }
  if (ids) ids->insert(ids->end(), tokenizer.appended().begin(), tokenizer.appended().end());
  if (ids && ids->size() <= limit) return *std::move(ids);
  throw Error(ErrorKind::limit_exceeded,
              {.where = what,
               .found = fmt::format("more than {} tokens", limit),
               .expected = fmt::format("at most {}, with what the model's form adds", limit),
               .advice = "shorten the text"});
}

TextEncoder::TextEncoder(const formats::ModelConfig& config,
                         std::shared_ptr<const formats::TensorSource> source, const ops::Selection& selection,
                         device::ThreadPool& threads)
    : backbone_(config, std::move(source), selection, threads) {}

std::vector<float> TextEncoder::hidden_states(std::span<const std::int32_t> ids,
                                              const std::stop_token& stop) {
  std::atomic<bool> cancelled{false};
  const std::stop_callback watch(stop, [&] { cancelled = true; });
  backbone::Segment segment{.tokens = ids};
  segment.readouts.resize(ids.size());
  std::iota(segment.readouts.begin(), segment.readouts.end(), std::size_t{0});
  backbone::RunOptions options;
  options.cancel = &cancelled;
  backbone::PassResult result = backbone_.run({&segment, 1}, options);
  return std::move(result.hidden.front());
}

std::vector<float> embedding_rows(const formats::TensorSource& source, std::span<const std::int32_t> ids,
                                  std::size_t hidden_size) {
  constexpr const char* kTable = "embed_tokens.weight";
  const formats::TensorInfo& table = formats::require(source, kTable);
  const std::uint64_t vocabulary = table.shape.empty() ? 0 : table.shape[0];
  const std::vector<std::uint64_t> shape = {vocabulary, hidden_size};
  formats::require(source, kTable, shape);
  std::vector<float> rows(ids.size() * hidden_size);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<std::uint64_t>(ids[i]) >= vocabulary) {
      throw Error(ErrorKind::mismatch,
                  {.where = table.origin,
                   .found = fmt::format("{} embedding rows", vocabulary),
                   .expected = fmt::format("one for token {} of the tokenizer", ids[i])});
    }
    source.read_rows(kTable, static_cast<std::uint64_t>(ids[i]), 1,
                     std::span(rows).subspan(i * hidden_size, hidden_size));
  }
  return rows;
}

}  // namespace assay::music
