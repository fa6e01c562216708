#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::lab {

/// A git repository, read through the `git` program (no shell, the user's own configuration).
class GitRepository {
 public:
  struct Entry {
    std::string path;  ///< from the repository's root
    std::string blob;  ///< object id
  };

  /// The repository that a folder lies in; nothing where it lies in none. Throws Error(missing) where there
  /// is no git program, Error(io) with git's own words where it fails otherwise.
  static std::optional<GitRepository> find(const std::filesystem::path& folder);

  const std::filesystem::path& root() const noexcept { return root_; }

  /// The checked-out commit; nothing before the first one.
  std::optional<std::string> head() const;

  /// Whether commits older than some depth are not here (a shallow clone).
  bool is_shallow() const;

  /// Tracked files that differ from the checked-out commit and untracked ones that git does not ignore,
  /// under these paths from the root (everywhere for none), but for those under `excluded`.
  std::vector<std::string> uncommitted(const std::vector<std::string>& paths,
                                       const std::string& excluded) const;

  /// Every commit behind the checked-out one that touched this path, oldest first.
  std::vector<std::string> commits_touching(const std::string& path) const;

  /// Every file's path that some commit behind the checked-out one had under a path.
  std::vector<std::string> paths_ever(const std::string& path) const;

  /// The files of a commit under a path.
  std::vector<Entry> files(const std::string& commit, const std::string& path) const;

  std::string read_blob(const std::string& blob) const;

  /// Whether a commit is here at all.
  bool has_commit(const std::string& commit) const;

  /// A path as git names it, from the root; nothing for one outside.
  std::optional<std::string> relative(const std::filesystem::path& path) const;

 private:
  explicit GitRepository(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
};

}  // namespace assay::lab
