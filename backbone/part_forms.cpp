#include "backbone/part_forms.hpp"

#include <numeric>

namespace assay::backbone {

std::string_view part_name(LayerPart part, formats::LayerType type) {
  const bool full = type == formats::LayerType::full_attention;
  switch (part) {
    case LayerPart::mixer_in:
      return full ? "attention.qkv" : "linear_attention.in";
    case LayerPart::mixer:
      return full ? "attention.core" : "linear_attention.recurrence";
    case LayerPart::mixer_out:
      return full ? "attention.out" : "linear_attention.out";
    case LayerPart::mlp_in:
      return "mlp.gate_up";
    case LayerPart::mlp_out:
      return "mlp.down";
  }
  return "?";
}

FormTable::FormTable(const ops::Selection& own, std::size_t layers, const PartForms& parts)
    : own_(own), parts_(layers) {
  if (!parts) return;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (const LayerPart part : kLayerParts) {
      parts_[layer][static_cast<std::size_t>(part)] = parts(layer, part);
    }
  }
}

std::size_t FormTable::alignment() const {
  std::size_t alignment = own_.gated_delta_rule->chunk;
  for (std::size_t layer = 0; layer < parts_.size(); ++layer) {
    alignment = std::lcm(alignment, of(layer, LayerPart::mixer).gated_delta_rule->chunk);
  }
  return alignment;
}

}  // namespace assay::backbone
