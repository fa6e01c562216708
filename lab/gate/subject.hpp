#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::lab {

/// Numbers in the type that the subject computed, so that their bits can be compared.
using Values = std::variant<std::vector<float>, std::vector<double>>;

std::size_t value_count(const Values& values);
double value_at(const Values& values, std::size_t index);

/// A named array of an answer: a layer's output, an option's probabilities, a waveform.
struct Array {
  std::string name;
  std::vector<std::size_t> shape;  ///< outermost first; the product is the number of values
  Values values;
  double sample_rate = 0;             ///< samples a second along the last axis; 0: no sound
  std::string input_difference = {};  ///< what was put in that the oracle had otherwise; empty: nothing
};

/// A subject's answer to one case. The oracle's and the subject's have the same arrays in the same order.
struct Answer {
  std::vector<Array> arrays;
};

/// Whether the two hold the same arrays with the same bits, inputs apart.
bool same_bits(const Answer& a, const Answer& b);

/// The ways to be wrong on purpose that only a subject can carry out, since they change what goes in. Those
/// that change what comes out are in red_arms.hpp.
namespace input_arm {
inline constexpr std::string_view kNegatedInstructions = "negated_instructions";
inline constexpr std::string_view kSwappedStates = "swapped_states";
inline constexpr std::string_view kWrongSeed = "wrong_seed";
inline constexpr std::string_view kSwappedConditions = "swapped_conditions";
}  // namespace input_arm

/// What a gate judges: anything that answers cases in numbers where an oracle's numbers are known. An op's
/// form, a model's run and a stage of a model are subjects; no comparator knows which.
class Subject {
 public:
  virtual ~Subject() = default;

  /// What is run, for a receipt: "type", and "model_identity", "forms", "precision", "fixture",
  /// "fixture_sha256", "seed" where they apply.
  virtual nlohmann::ordered_json describe() const = 0;

  virtual std::size_t cases() const = 0;
  virtual std::string case_name(std::size_t index) const = 0;  ///< "r002"

  /// The oracle's answer.
  virtual Answer expected(std::size_t index) = 0;

  /// The subject's own answer. A number that it could not compute is a NaN, not an error.
  virtual Answer run(std::size_t index) = 0;

  /// The answer to the case with its input changed by an input arm; nothing where this case has no such
  /// change (it would be too long). Throws Error(unsupported) for an arm that the subject does not know,
  /// Error(invalid_argument) where no case of the subject can be changed so.
  virtual std::optional<Answer> run_changed(std::size_t index, std::string_view arm) = 0;
};

}  // namespace assay::lab
