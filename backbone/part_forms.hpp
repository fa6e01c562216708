#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "formats/model_config.hpp"
#include "ops/selection.hpp"

namespace assay::backbone {

/// The parts of a layer whose forms can be chosen apart, so that it can be found which of them a form
/// damages.
enum class LayerPart {
  mixer_in,   ///< the norm before it and the product with q, k, v (and gate, or z, b, a)
  mixer,      ///< between the products: rope and attention, or convolution and recurrence, with their norms
  mixer_out,  ///< the product that ends the mixer
  mlp_in,     ///< the norm before it, the product with gate and up, swiglu
  mlp_out,    ///< the product with down
};
inline constexpr std::array kLayerParts{LayerPart::mixer_in, LayerPart::mixer, LayerPart::mixer_out,
                                        LayerPart::mlp_in, LayerPart::mlp_out};

/// "attention.qkv", "linear_attention.recurrence", "mlp.down".
std::string_view part_name(LayerPart part, formats::LayerType type);

/// The forms of one part of one layer; null for the backbone's own selection. Asked once for each part when
/// the backbone is made; what it points at must outlive the backbone.
using PartForms = std::function<const ops::Selection*(std::size_t layer, LayerPart part)>;

/// The answers for every layer.
class FormTable {
 public:
  FormTable(const ops::Selection& own, std::size_t layers, const PartForms& parts);

  const ops::Selection& own() const { return own_; }
  const ops::Selection& of(std::size_t layer, LayerPart part) const {
    const ops::Selection* chosen = parts_[layer][static_cast<std::size_t>(part)];
    return chosen == nullptr ? own_ : *chosen;
  }

  /// What a call's cut must be a multiple of: every recurrence in use may resume there.
  std::size_t alignment() const;

 private:
  ops::Selection own_;
  std::vector<std::array<const ops::Selection*, kLayerParts.size()>> parts_;
};

}  // namespace assay::backbone
