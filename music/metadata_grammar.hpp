#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "music/planner_text.hpp"
#include "text/tokenizer.hpp"

/// What the planner may write in its first phase, as a finite-state machine over tokens:
///
///     <think>
///     bpm: 30 … 300
///     caption: text, in one or more lines of which the later ones are indented
///     duration: 10 … 600
///     keyscale: A … G, ♯ or ♭ or neither, major or minor
///     language: one of 51
///     timesignature: 2, 3, 4 or 6
///
/// Names and values are tokenised as they stand in such a text ("bpm: 120"), so that the model sees what it
/// was taught. A field that is given is written out without asking the model.
/// Source: ace-step/ACE-Step-1.5, acestep/constrained_logits_processor.py and acestep/constants.py.
namespace assay::music {

/// Everything about a tokenizer that the grammar needs, made once.
class MetadataVocabulary {
 public:
  /// `forbidden` are ids that no caption may hold (codes, control tokens) beside those with a backtick.
  /// Throws Error(unsupported) for a tokenizer that cannot write the fields.
  MetadataVocabulary(const text::Tokenizer& tokenizer, std::span<const std::int32_t> forbidden);

  const std::string& text(std::int32_t token) const { return texts_[static_cast<std::size_t>(token)]; }
  std::size_t size() const { return texts_.size(); }
  bool forbidden(std::int32_t token) const { return forbidden_[static_cast<std::size_t>(token)]; }
  std::int32_t newline() const { return newline_; }
  /// Tokens of `value` and a newline as they follow `name` and a colon.
  std::vector<std::int32_t> value_tokens(std::string_view name, std::string_view value) const;
  const text::Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  const text::Tokenizer& tokenizer_;
  std::vector<std::string> texts_;
  std::vector<bool> forbidden_;
  std::int32_t newline_;
};

/// Values as a tree of tokens.
class TokenTrie {
 public:
  void insert(std::span<const std::int32_t> tokens);
  /// Tokens that may follow the path to `node`; empty at a leaf.
  const std::map<std::int32_t, std::size_t>& next(std::size_t node) const { return nodes_[node]; }

 private:
  std::vector<std::map<std::int32_t, std::size_t>> nodes_ =
      std::vector<std::map<std::int32_t, std::size_t>>(1);
};

class MetadataGrammar {
 public:
  struct Options {
    bool caption = true;   ///< whether the caption is written at all
    bool language = true;  ///< likewise
    int longest_duration = 600;
  };
  static constexpr std::size_t kMostCaptionTokens = 512;

  /// Throws Error(invalid_argument) naming the field for a given value that the grammar does not have.
  MetadataGrammar(const MetadataVocabulary& vocabulary, const SongMetadata& given, const Options& options);

  /// Tokens that come next whatever the model says; taken by this call. Empty where the model has a choice.
  std::vector<std::int32_t> take_forced();

  /// Whether all fields are written; then nothing is forced or allowed.
  bool done() const { return step_ == steps_.size(); }

  /// Sets the logits of tokens that may not come next to −∞. `logits` [vocabulary] are what the model says
  /// after the tokens accepted so far: a caption's line ends the caption where the likeliest next token does
  /// not indent. Gives false where the choice is over and take_forced() goes on.
  bool restrict(std::span<float> logits);

  /// A token that restrict() left allowed.
  void accept(std::int32_t token);

 private:
  enum class Kind { fixed, choice, caption };
  struct Step {
    Kind kind = Kind::fixed;
    std::vector<std::int32_t> tokens = {};  ///< of a fixed one
    TokenTrie values = {};                  ///< of a choice
  };
  void add_field(std::string_view name, const std::optional<std::string>& given,
                 const std::vector<std::string>& values);
  void add_fixed(std::vector<std::int32_t> tokens);
  bool restrict_caption(std::span<float> logits);
  void next_step();

  const MetadataVocabulary& vocabulary_;
  std::vector<Step> steps_;
  std::size_t step_ = 0;
  std::size_t node_ = 0;  ///< in the choice's tree
  std::size_t caption_tokens_ = 0;
  bool caption_line_ended_ = false;
};

/// The values that a field may have, "bpm", "duration" (to `longest`), "keyscale", "language",
/// "timesignature".
std::vector<std::string> metadata_values(std::string_view field, int longest = 600);

}  // namespace assay::music
