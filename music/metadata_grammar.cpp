#include "music/metadata_grammar.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace assay::music {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr std::array<std::string_view, 51> kLanguages{
    "ar", "az", "bg", "bn", "ca", "cs", "da", "de", "el", "en",  "es", "fa",     "fi",
    "fr", "he", "hi", "hr", "ht", "hu", "id", "is", "it", "ja",  "ko", "la",     "lt",
    "ms", "ne", "nl", "no", "pa", "pl", "pt", "ro", "ru", "sa",  "sk", "sr",     "sv",
    "sw", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "yue", "zh", "unknown"};

std::vector<std::string> numbers(int first, int last) {
  std::vector<std::string> values;
  for (int value = first; value <= last; ++value) values.push_back(std::to_string(value));
  return values;
}

std::vector<std::string> keyscales() {
  std::vector<std::string> values;
  for (const char note : std::string_view("ABCDEFG")) {
    for (const std::string_view accidental : {"", "#", "b", "\xe2\x99\xaf", "\xe2\x99\xad"}) {
      for (const std::string_view mode : {"major", "minor"}) {
        values.push_back(fmt::format("{}{} {}", note, accidental, mode));
      }
    }
  }
  return values;
}

std::optional<std::string> number_text(const std::optional<int>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

}  // namespace

std::vector<std::string> metadata_values(std::string_view field, int longest) {
  if (field == "bpm") return numbers(30, 300);
  if (field == "duration") return numbers(10, longest);
  if (field == "keyscale") return keyscales();
  if (field == "language") return {kLanguages.begin(), kLanguages.end()};
  return {"2", "3", "4", "6"};
}

MetadataVocabulary::MetadataVocabulary(const text::Tokenizer& tokenizer,
                                       std::span<const std::int32_t> forbidden)
    : tokenizer_(tokenizer), texts_(tokenizer.id_limit()), forbidden_(tokenizer.id_limit()) {
  for (std::size_t id = 0; id < texts_.size(); ++id) {
    const auto token = static_cast<std::int32_t>(id);
    try {
      texts_[id] = tokenizer.decode(std::span(&token, 1));
    } catch (const Error&) {
      forbidden_[id] = true;  // a hole among the ids
    }
    // "<|im_end|>" and its like are text only to a reader.
    const bool control = texts_[id].starts_with("<|") && texts_[id].ends_with("|>");
    if (control || texts_[id].find('`') != std::string::npos) forbidden_[id] = true;
  }
  for (const std::int32_t id : forbidden) forbidden_[static_cast<std::size_t>(id)] = true;
  const std::vector<std::int32_t> newline = tokenizer.encode("\n");
  if (newline.size() != 1) {
    throw Error(ErrorKind::unsupported, {.where = "tokenizer",
                                         .found = "no token for a newline",
                                         .expected = "a tokenizer of the Qwen family"});
  }
  newline_ = newline[0];
}

std::vector<std::int32_t> MetadataVocabulary::value_tokens(std::string_view name,
                                                           std::string_view value) const {
  const std::vector<std::int32_t> before = tokenizer_.encode(fmt::format("{}:", name));
  const std::vector<std::int32_t> whole = tokenizer_.encode(fmt::format("{}: {}\n", name, value));
  const bool continues =
      whole.size() > before.size() && std::equal(before.begin(), before.end(), whole.begin());
  if (!continues) return tokenizer_.encode(fmt::format(" {}\n", value));
  return {whole.begin() + static_cast<std::ptrdiff_t>(before.size()), whole.end()};
}

void TokenTrie::insert(std::span<const std::int32_t> tokens) {
  std::size_t node = 0;
  for (const std::int32_t token : tokens) {
    const auto [place, added] = nodes_[node].try_emplace(token, nodes_.size());
    const std::size_t child = place->second;
    if (added) nodes_.emplace_back();
    node = child;
  }
}

MetadataGrammar::MetadataGrammar(const MetadataVocabulary& vocabulary, const SongMetadata& given,
                                 const Options& options)
    : vocabulary_(vocabulary) {
  add_fixed(vocabulary.tokenizer().encode("<think>\n"));
  add_field("bpm", number_text(given.bpm), metadata_values("bpm"));
  if (options.caption || given.caption) add_field("caption", given.caption, {});
  add_field("duration", number_text(given.duration), metadata_values("duration", options.longest_duration));
  add_field("keyscale", given.keyscale, metadata_values("keyscale"));
  if (options.language || given.language) {
    add_field("language", given.language, metadata_values("language"));
  }
  add_field("timesignature", given.timesignature, metadata_values("timesignature"));
}

void MetadataGrammar::add_fixed(std::vector<std::int32_t> tokens) {
  if (!steps_.empty() && steps_.back().kind == Kind::fixed) {
    steps_.back().tokens.insert(steps_.back().tokens.end(), tokens.begin(), tokens.end());
  } else {
    steps_.push_back({.kind = Kind::fixed, .tokens = std::move(tokens)});
  }
}

void MetadataGrammar::add_field(std::string_view name, const std::optional<std::string>& given,
                                const std::vector<std::string>& values) {
  add_fixed(vocabulary_.tokenizer().encode(fmt::format("{}:", name)));
  if (given) {
    if (!values.empty() && std::ranges::find(values, *given) == values.end()) {
      throw Error(ErrorKind::invalid_argument,
                  {.where = std::string(name),
                   .found = in_quotes(*given),
                   .expected = values.size() <= 100 ? fmt::format("one of {}", fmt::join(values, ", "))
                                                    : values.front() + " to " + values.back()});
    }
    add_fixed(vocabulary_.value_tokens(name, *given));
    return;
  }
  Step step{.kind = values.empty() ? Kind::caption : Kind::choice};
  for (const std::string& value : values) step.values.insert(vocabulary_.value_tokens(name, value));
  steps_.push_back(std::move(step));
}

void MetadataGrammar::next_step() {
  ++step_;
  node_ = 0;
}

std::vector<std::int32_t> MetadataGrammar::take_forced() {
  std::vector<std::int32_t> forced;
  while (!done()) {
    const Step& step = steps_[step_];
    if (step.kind == Kind::fixed) {
      forced.insert(forced.end(), step.tokens.begin(), step.tokens.end());
      next_step();
      continue;
    }
    if (step.kind == Kind::caption) break;
    // A choice with one way on is none.
    const auto& next = step.values.next(node_);
    if (next.size() != 1) break;
    forced.push_back(next.begin()->first);
    accept(forced.back());
  }
  return forced;
}

bool MetadataGrammar::restrict(std::span<float> logits) {
  if (done() || steps_[step_].kind == Kind::fixed) return false;
  if (steps_[step_].kind == Kind::caption) return restrict_caption(logits);
  const auto& next = steps_[step_].values.next(node_);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!next.contains(static_cast<std::int32_t>(i))) logits[i] = kForbidden;
  }
  return true;
}

bool MetadataGrammar::restrict_caption(std::span<float> logits) {
  // Rows beyond the tokenizer's last token (the table is padded) are no text.
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<std::int32_t>(i);
    if (i >= vocabulary_.size() || vocabulary_.forbidden(token)) logits[i] = kForbidden;
  }
  if (caption_line_ended_) {
    const auto likeliest = std::ranges::max_element(logits) - logits.begin();
    const std::string& text = vocabulary_.text(static_cast<std::int32_t>(likeliest));
    if (caption_tokens_ >= kMostCaptionTokens || !(text.starts_with(' ') || text.starts_with('\t'))) {
      next_step();
      return false;
    }
    caption_line_ended_ = false;
  }
  for (std::size_t i = 0; i < std::min(logits.size(), vocabulary_.size()); ++i) {
    const std::string& text = vocabulary_.text(static_cast<std::int32_t>(i));
    const std::size_t newline = text.find_first_of("\r\n");
    const bool blank = newline == 0 || text.find_first_not_of(" \t\r\n") == std::string::npos;
    // A line ends once, at a token's end, and has something in it.
    const bool inside = newline != std::string::npos && newline + 1 < text.size();
    if (inside || (caption_tokens_ == 0 && blank && newline != std::string::npos)) logits[i] = kForbidden;
  }
  if (caption_tokens_ >= kMostCaptionTokens) {
    const float end = std::max(logits[static_cast<std::size_t>(vocabulary_.newline())], 0.0f);
    std::ranges::fill(logits, kForbidden);
    logits[static_cast<std::size_t>(vocabulary_.newline())] = end;
  }
  return true;
}

void MetadataGrammar::accept(std::int32_t token) {
  const Step& step = steps_[step_];
  if (step.kind == Kind::caption) {
    ++caption_tokens_;
    caption_line_ended_ = vocabulary_.text(token).ends_with('\n');
    return;
  }
  node_ = step.values.next(node_).at(token);
  if (step.values.next(node_).empty()) next_step();
}

}  // namespace assay::music
