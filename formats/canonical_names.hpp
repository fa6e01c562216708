#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/tensor_source.hpp"

namespace assay::formats {

/// The name that the text backbone knows a checkpoint's tensor or module by:
/// "layers.0.self_attn.q_proj.weight" for that with `model.`, `model.language_model.`,
/// `language_model.model.` or `language_model.` before it, or nothing. Null for what is not the text
/// backbone's: vision, multi-token prediction and the language model's output.
std::optional<std::string> canonical_name(std::string_view name);

/// The tensors of `source` by their canonical names, without those that have none.
/// Throws Error(malformed) when two tensors come to the same name.
std::shared_ptr<const TensorSource> canonical_names(std::shared_ptr<const TensorSource> source);

}  // namespace assay::formats
