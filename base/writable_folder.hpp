#pragma once

#include <filesystem>

namespace assay {

/// Makes the folder, and those above it, where they are missing, writes a file into it and takes it away
/// again: so that long work is not done for files that could never be written. Throws Error(io | missing)
/// naming what could not be made or written.
void require_writable_folder(const std::filesystem::path& folder);

}  // namespace assay
