#include "ops/form.hpp"

namespace assay::ops {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
  }
  return "?";
}

}  // namespace assay::ops
