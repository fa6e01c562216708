#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace assay::formats {

/// Whether `id` has the form of a model id of the Hugging Face Hub ("Qwen/Qwen3-4B", "gpt2").
bool is_hub_id(std::string_view id);

/// The local cache's directory: HF_HUB_CACHE, or hub/ in HF_HOME, or huggingface/hub in XDG_CACHE_HOME, or
/// ~/.cache/huggingface/hub (huggingface_hub, src/huggingface_hub/constants.py). Null without any of these.
std::optional<std::filesystem::path> hf_cache_directory();

/// The snapshot of a downloaded model: models--org--name/snapshots/<commit>, where `revision` is the commit
/// itself or a branch or tag (empty: main) that refs/ resolves. Null when it is not downloaded. Throws
/// Error(invalid_argument) for an id or revision that could lead out of the cache, Error(malformed) for a ref
/// that holds no commit.
std::optional<std::filesystem::path> find_in_hf_cache(std::string_view id, std::string_view revision);

}  // namespace assay::formats
