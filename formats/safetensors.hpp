#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/tensor_source.hpp"

namespace assay::formats {

/// Opens a safetensors file, or a directory that holds model.safetensors or the shards that
/// model.safetensors.index.json lists (transformers' names; diffusers' have another `stem`). Files are
/// mapped; nothing is read but the headers.
///
/// Every header is checked as the reference implementation does (huggingface/safetensors,
/// safetensors/src/tensor.rs): header length, JSON, no name twice, known types, sizes that follow from type
/// and shape, data that is covered once and without holes. The index decides which shard holds a tensor;
/// shards are plain file names beside the index.
///
/// Throws Error(missing) for a file, shard or listed tensor that is not there, Error(malformed) for a file
/// that contradicts the format, Error(unsupported) for element types that nothing here computes with.
std::shared_ptr<const TensorSource> open_safetensors(const std::filesystem::path& file_or_directory,
                                                     std::string_view stem = "model");

/// The same for one file's bytes, which must outlive the source. `origin` names them in messages.
std::shared_ptr<const TensorSource> parse_safetensors(std::span<const std::byte> bytes,
                                                      const std::string& origin);

/// Whether the directory holds weights that open_safetensors would take.
bool has_safetensors(const std::filesystem::path& directory);

}  // namespace assay::formats
