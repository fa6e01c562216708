#include "lab/gate/subject.hpp"

#include <cstring>

namespace assay::lab {

std::size_t value_count(const Values& values) {
  return std::visit([](const auto& list) { return list.size(); }, values);
}

double value_at(const Values& values, std::size_t index) {
  return std::visit([&](const auto& list) { return static_cast<double>(list[index]); }, values);
}

bool same_bits(const Answer& a, const Answer& b) {
  if (a.arrays.size() != b.arrays.size()) return false;
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    const Array& x = a.arrays[i];
    const Array& y = b.arrays[i];
    if (x.shape != y.shape || x.values.index() != y.values.index()) return false;
    const bool same = std::visit(
        [&](const auto& list) {
          const auto& other = std::get<std::decay_t<decltype(list)>>(y.values);
          return list.size() == other.size() &&
                 (list.empty() || std::memcmp(list.data(), other.data(), list.size() * sizeof list[0]) == 0);
        },
        x.values);
    if (!same) return false;
  }
  return true;
}

}  // namespace assay::lab
