#include "lab/gate/red_arms.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace assay::lab {
namespace {

constexpr std::string_view kScaled = "scaled_output";
constexpr std::string_view kPermuted = "permuted_output";
constexpr std::string_view kShifted = "shifted_window";
constexpr std::array<std::string_view, 7> kArms{input_arm::kNegatedInstructions,
                                                input_arm::kSwappedStates,
                                                input_arm::kWrongSeed,
                                                input_arm::kSwappedConditions,
                                                kScaled,
                                                kPermuted,
                                                kShifted};

/// The name of the number that an arm takes, empty for those that take none.
std::string amount_field(std::string_view arm) {
  if (arm == kScaled) return "factor";
  return arm == kShifted ? "seconds" : "";
}

void scale(Array& array, double factor) {
  std::visit(
      [&](auto& list) {
        using Value = typename std::decay_t<decltype(list)>::value_type;
        for (auto& value : list) value = static_cast<Value>(value * factor);
      },
      array.values);
}

/// Each run of `length` values starts `places` later in itself.
void rotate_runs(Array& array, std::size_t length, std::size_t places) {
  if (length == 0) return;
  std::visit(
      [&](auto& list) {
        for (std::size_t first = 0; first + length <= list.size(); first += length) {
          const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
          std::rotate(begin, begin + static_cast<std::ptrdiff_t>(places % length),
                      begin + static_cast<std::ptrdiff_t>(length));
        }
      },
      array.values);
}

void shift(Array& array, double seconds) {
  if (!(array.sample_rate > 0) || array.shape.empty()) return;
  const double samples = std::max(1.0, std::round(seconds * array.sample_rate));
  const std::size_t length = array.shape.back();
  if (length == 0) return;
  rotate_runs(array, length, static_cast<std::size_t>(std::fmod(samples, static_cast<double>(length))));
}

}  // namespace

RedArm read_red_arm(JsonReader reader) {
  RedArm arm{.name = reader.required<std::string>("arm"), .amount = 0};
  if (std::find(kArms.begin(), kArms.end(), arm.name) == kArms.end()) {
    throw Error(ErrorKind::malformed, {.where = reader.where("arm"),
                                       .found = "\"" + arm.name + "\"",
                                       .expected = fmt::format("one of {}", fmt::join(kArms, ", "))});
  }
  if (const std::string field = amount_field(arm.name); !field.empty()) {
    arm.amount = reader.required<double>(field);
    if ((arm.name == kScaled && arm.amount == 1) || (arm.name == kShifted && !(arm.amount > 0))) {
      throw Error(ErrorKind::malformed,
                  {.where = reader.where(field),
                   .found = fmt::format("{}", arm.amount),
                   .expected = arm.name == kScaled ? "a factor that changes something" : "more than 0"});
    }
  }
  reader.finish();
  return arm;
}

nlohmann::ordered_json to_json(const RedArm& arm) {
  nlohmann::ordered_json json{{"arm", arm.name}};
  if (const std::string field = amount_field(arm.name); !field.empty()) json[field] = arm.amount;
  return json;
}

bool is_input_arm(std::string_view name) {
  return name == input_arm::kNegatedInstructions || name == input_arm::kSwappedStates ||
         name == input_arm::kWrongSeed || name == input_arm::kSwappedConditions;
}

Answer made_wrong(const RedArm& arm, const Answer& answer) {
  Answer wrong = answer;
  for (Array& array : wrong.arrays) {
    array.input_difference.clear();
    if (arm.name == kScaled) scale(array, arm.amount);
    if (arm.name == kPermuted) rotate_runs(array, value_count(array.values), 1);
    if (arm.name == kShifted) shift(array, arm.amount);
  }
  return wrong;
}

}  // namespace assay::lab
