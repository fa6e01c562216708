#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/gate/subject.hpp"
#include "lab/json_reader.hpp"

/// Red arms: runs that are wrong on purpose, each of which a gate must fail.
///
/// Input arms change what the subject is given (see input_arm): "negated_instructions", "swapped_states",
/// "wrong_seed", "swapped_conditions". Output arms change what it answered and suit every subject:
/// "scaled_output" {"factor"}: every value times the factor, which is not 1.
/// "permuted_output": every array's values one place on, the first one last.
/// "shifted_window" {"seconds"}: every array with a sample rate read that much later, the beginning at the
/// end.
///
/// An arm judges the cases that it changed: where its answer has the bits of the unchanged one (a constant
/// that was permuted, zeros that were scaled, a period by which a window was shifted), the arm was not wrong
/// there and the case is left out of it. An arm that changes no case is *inert*: it shows nothing about the
/// gate, so the gate fails until the arm is taken out of its file or given cases where it bites.
namespace assay::lab {

struct RedArm {
  std::string name;
  double amount = 0;  ///< the factor or the seconds; 0 where the arm has neither
};

/// {"arm": NAME, …}. Throws Error(malformed) naming file and field for an arm that there is none of, a field
/// that it has not, a factor that is 1 or not finite, a shift that is not above 0.
RedArm read_red_arm(JsonReader reader);

nlohmann::ordered_json to_json(const RedArm& arm);

bool is_input_arm(std::string_view name);

/// The answer made wrong by an output arm.
Answer made_wrong(const RedArm& arm, const Answer& answer);

}  // namespace assay::lab
