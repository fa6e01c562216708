#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/gate/subject.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// One call of an op: its inputs, and what they must give.
class OpCase {
 public:
  virtual ~OpCase() = default;
  /// Shape and kind of values: "m=3 n=17 k=64 spread".
  virtual std::string name() const = 0;
  /// The op's contract evaluated in double precision from the same fp32 inputs.
  virtual Answer exact() const = 0;
  /// What the selection's form of the op gives.
  virtual Answer run(const ops::Selection& selection, const ops::Context& context) const = 0;
};

/// The cases of an op, in a fixed order, drawn from `seed`: edges of the shapes that vector forms are cut at
/// (1, a width less and more one, remainders), then random shapes; each over ordinary values, zeros, values
/// spread over twelve decades, and the op's own extremes. The same seed gives the same cases on every
/// machine. Throws Error(invalid_argument) for an op that there is none of, naming those there are.
std::vector<std::unique_ptr<OpCase>> make_op_cases(std::string_view op, std::uint64_t seed);

}  // namespace assay::lab
