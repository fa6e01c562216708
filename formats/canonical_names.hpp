#pragma once

#include <functional>
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

/// A checkpoint's name to another, or to nothing where the tensor is none of the part's.
using TensorNames = std::function<std::optional<std::string>(std::string_view)>;

/// The tensors of `source` by the names that `names` gives them, without those that it gives none.
/// Throws Error(malformed) when two tensors come to the same name.
std::shared_ptr<const TensorSource> renamed_tensors(std::shared_ptr<const TensorSource> source,
                                                    const TensorNames& names);

/// The tensors of `source` by their canonical names, without those that have none.
/// Throws Error(malformed) when two tensors come to the same name.
std::shared_ptr<const TensorSource> canonical_names(std::shared_ptr<const TensorSource> source);

}  // namespace assay::formats
