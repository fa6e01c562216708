#include "lab/gate/op_cases.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "lab/gate/op_case_values.hpp"

namespace assay::lab {

std::vector<std::unique_ptr<OpCase>> make_op_cases(std::string_view op, std::uint64_t seed) {
  using Make = std::vector<std::unique_ptr<OpCase>> (*)(Draw);
  constexpr std::array<std::pair<std::string_view, Make>, 11> kOps{
      {{"matmul", matmul_cases},
       {"gated_delta_rule", gated_delta_rule_cases},
       {"causal_conv1d", causal_conv1d_cases},
       {"attention", attention_cases},
       {"rms_norm", rms_norm_cases},
       {"rope", rope_cases},
       {"swiglu", swiglu_cases},
       {"embed", embed_cases},
       {"conv1d", conv1d_cases},
       {"conv_transpose1d", conv_transpose1d_cases},
       {"snake", snake_cases}}};
  std::string names;
  for (const auto& [name, make] : kOps) {
    if (name == op) return make(Draw(seed));
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::invalid_argument, {.where = "gate of op '" + std::string(op) + "'",
                                            .found = "no such op",
                                            .expected = "one of " + names});
}

}  // namespace assay::lab
