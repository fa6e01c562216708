#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace assay {

/// Lower-case hexadecimal SHA-256 of the bytes.
std::string sha256_hex(std::span<const std::byte> bytes);

/// The same of a whole file, read in pieces that do not stay resident. Throws Error(missing | io).
std::string sha256_hex(const std::filesystem::path& file);

}  // namespace assay
