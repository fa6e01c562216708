#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torch_zip.hpp"

namespace assay::formats {

/// A storage by its key in the archive, of exactly `bytes` bytes.
using StorageLoader =
    std::function<std::shared_ptr<const std::vector<std::byte>>(const std::string& key, std::uint64_t bytes)>;

/// Runs a pickle (protocols 0 to 5 as far as torch writes them) on a machine that knows data and tensors
/// only; see read_torch_file for what it refuses. Storages are asked of `load_storage` when a tensor first
/// names them.
TorchValue unpickle(std::span<const std::byte> pickle, const std::string& origin,
                    const StorageLoader& load_storage);

}  // namespace assay::formats
