// A planner that says anything at all: the grammar makes whole metadata of it, which reads back in range.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "music/metadata_grammar.hpp"
#include "text/split_pattern.hpp"
#include "text/tokenizer.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"

namespace {

using namespace assay::music;
using assay::text::Tokenizer;

constexpr std::int32_t kControlToken = 300;
constexpr std::size_t kVocabulary = 320;  // a table padded past the last token

void check(bool holds) {
  if (!holds) std::abort();
}

/// Every byte, what begins a line of metadata, what a line may end with, and control tokens.
Tokenizer small_tokenizer() {
  assay::text::TokenizerParts parts;
  const auto add = [&](const std::string& text) {
    parts.vocabulary.emplace_back(text, static_cast<std::int32_t>(parts.vocabulary.size()));
  };
  for (const char32_t stand_in : assay::text::byte_level_alphabet()) {
    std::string text;
    assay::append_utf8(stand_in, text);
    add(text);
  }
  const std::pair<const char*, const char*> merges[] = {{"b", "p"}, {"bp", "m"}, {"Ċ", "Ċ"}, {"Ġ", "1"},
                                                        {"1", "2"}, {"Ġ", "m"},  {"Ġ", "Ġ"}, {".", "Ċ"}};
  for (const auto& [left, right] : merges) {
    parts.merges.emplace_back(left, right);
    add(std::string(left) + right);
  }
  parts.added = {{.content = "<|im_end|>", .id = kControlToken},
                 {.content = "<|audio_code_0|>", .id = kControlToken + 1}};
  parts.split_pattern = assay::text::kQwen2SplitPattern;
  return Tokenizer::from_parts(std::move(parts), "fuzz");
}

/// Gives one of the allowed tokens by each byte of an input, and one of them when the input is over.
class Chooser {
 public:
  Chooser(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::vector<float> logits() const {
    std::vector<float> values(kVocabulary);
    const std::size_t wanted = at_ < size_ ? data_[at_] : 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = -static_cast<float>((i + kVocabulary - wanted) % kVocabulary);
    }
    return values;
  }
  void next() { ++at_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

std::vector<std::int32_t> write(MetadataGrammar grammar, Chooser chooser) {
  std::vector<std::int32_t> written;
  while (true) {
    const std::vector<std::int32_t> forced = grammar.take_forced();
    written.insert(written.end(), forced.begin(), forced.end());
    if (grammar.done()) return written;
    std::vector<float> logits = chooser.logits();
    if (!grammar.restrict(logits)) continue;
    const auto best = std::ranges::max_element(logits);
    check(*best > -std::numeric_limits<float>::infinity());
    const auto token = static_cast<std::int32_t>(best - logits.begin());
    check(token < kControlToken);
    grammar.accept(token);
    written.push_back(token);
    chooser.next();
    check(written.size() < MetadataGrammar::kMostCaptionTokens + 256);
  }
}

bool is_value(std::string_view field, const std::string& value) {
  const std::vector<std::string> values = metadata_values(field);
  return std::ranges::find(values, value) != values.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer tokenizer = small_tokenizer();
  static const std::int32_t codes[] = {kControlToken + 1};
  static const MetadataVocabulary vocabulary(tokenizer, codes);
  static const MetadataGrammar grammar(vocabulary, {}, {.caption = true, .language = true});
  const std::string text = tokenizer.decode(write(grammar, Chooser(data, size)));
  constexpr std::string_view kThought = "<think>\n";
  check(text.starts_with(kThought) && text.ends_with('\n'));
  const SongMetadata metadata = parse_metadata_lines(std::string_view(text).substr(kThought.size()));
  check(metadata.bpm && metadata.duration);
  check(metadata.keyscale && is_value("keyscale", *metadata.keyscale));
  check(metadata.language && is_value("language", *metadata.language));
  check(metadata.timesignature && is_value("timesignature", *metadata.timesignature));
  return 0;
}
