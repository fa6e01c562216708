#pragma once

#include "base/error.hpp"
#include "decision/model.hpp"
#include "lab/decision_fixture.hpp"
#include "lab/gate/subject.hpp"

namespace assay::lab {

/// A decision model's run of a fixture's requests. A case is a record, an array a question's probabilities.
/// Input arms: "negated_instructions" asks for the opposite, "swapped_states" gives a record the state of the
/// next one that has another. Token ids are compared where nothing was changed.
class DecisionSubject final : public Subject {
 public:
  /// Both must outlive this. Throws Error(mismatch) for a fixture of another model: by its checkpoint's facts
  /// where it states them, its temperature, or ids past the vocabulary.
  DecisionSubject(decision::DecisionModel& model, const DecisionFixture& fixture);

  nlohmann::ordered_json describe() const override;
  std::size_t cases() const override;
  std::string case_name(std::size_t index) const override;
  Answer expected(std::size_t index) override;
  Answer run(std::size_t index) override;
  std::optional<Answer> run_changed(std::size_t index, std::string_view arm) override;

 private:
  Error in_record(const Error& error, std::size_t index) const;
  Answer answer(std::size_t index, const decision::Request& request, bool compare_tokens);

  decision::DecisionModel& model_;
  const DecisionFixture& fixture_;
};

}  // namespace assay::lab
