#include "lab/gate/op_subject.hpp"

#include <sstream>
#include <utility>

#include "base/error.hpp"

namespace assay::lab {
namespace {

/// More than one, so that a form's work is shared out.
constexpr std::size_t kThreads = 2;

/// "matmul=vector" out of all the selection's forms.
std::string form_of(const ops::Selection& selection, const std::string& op) {
  std::istringstream words(ops::describe(selection));
  for (std::string word; words >> word;) {
    if (word.starts_with(op + "=")) return word;
  }
  return op + "=none";
}

}  // namespace

OpSubject::OpSubject(std::string op, std::uint64_t seed, const ops::Selection& selection,
                     ops::Precision precision)
    : op_(std::move(op)),
      seed_(seed),
      selection_(selection),
      precision_(precision),
      cases_(make_op_cases(op_, seed)),
      threads_(kThreads) {}

nlohmann::ordered_json OpSubject::describe() const {
  return {{"type", "op"},
          {"op", op_},
          {"forms", form_of(selection_, op_)},
          {"precision", ops::to_string(precision_)},
          {"seed", seed_}};
}

Answer OpSubject::run(std::size_t index) {
  const device::Arena::Scope scope(arena_);
  return cases_[index]->run(selection_, {threads_, arena_});
}

std::optional<Answer> OpSubject::run_changed(std::size_t /*index*/, std::string_view arm) {
  throw Error(ErrorKind::unsupported, {.where = "red arm " + std::string(arm),
                                       .found = "nothing that an op can be run with",
                                       .expected = "an arm that changes the output"});
}

}  // namespace assay::lab
