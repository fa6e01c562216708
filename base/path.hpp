#pragma once

#include <filesystem>
#include <vector>

namespace assay {

// Questions about paths whose answers the standard library's own give with another exception type, or not at
// all: a loop of links, a folder that may not be read, a name that is too long are Error(io) here, naming the
// path and the system's reason. Links are followed.

/// Whether anything stands at `path`. False only where nothing does: a link to what is not there is
/// Error(missing), for whoever made it meant something to be found.
bool path_exists(const std::filesystem::path& path);

/// Whether a directory stands there. Throws as path_exists.
bool is_directory_path(const std::filesystem::path& path);

/// The paths in a directory, sorted. Throws Error(missing) where there is none.
std::vector<std::filesystem::path> list_directory(const std::filesystem::path& path);

/// Absolute, links resolved as far as anything stands there (std::filesystem::weakly_canonical).
std::filesystem::path resolved_path(const std::filesystem::path& path);

/// Makes a directory, and those above it, where they are not there yet.
void make_directories(const std::filesystem::path& path);

}  // namespace assay
