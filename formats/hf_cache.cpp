#include "formats/hf_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/path.hpp"

namespace assay::formats {
namespace {

constexpr std::size_t kMaxNameBytes = 256;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

/// A path component that stays where it is put.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' && name[0] != '-' &&
         std::ranges::all_of(name, is_name_char) && name.find("..") == std::string_view::npos;
}

/// Branches may have slashes ("refs/pr/1").
bool is_revision(std::string_view revision) {
  while (true) {
    const std::size_t slash = revision.find('/');
    if (!is_plain_name(revision.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    revision.remove_prefix(slash + 1);
  }
}

std::optional<std::filesystem::path> directory_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::filesystem::path(value);
}

std::string read_ref(const std::filesystem::path& ref) {
  std::string commit = read_text_file(ref, 4096);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == '\r' || commit.back() == ' '))
    commit.pop_back();
  if (is_plain_name(commit)) return commit;
  throw Error(ErrorKind::malformed, {.where = ref.string(),
                                     .found = "no commit",
                                     .expected = "the hash of a snapshot",
                                     .advice = "download the model again"});
}

}  // namespace

bool is_hub_id(std::string_view id) {
  const std::size_t slash = id.find('/');
  if (slash == std::string_view::npos) return is_plain_name(id);
  return is_plain_name(id.substr(0, slash)) && is_plain_name(id.substr(slash + 1));
}

std::optional<std::filesystem::path> hf_cache_directory() {
  if (const auto hub = directory_from("HF_HUB_CACHE")) return hub;
  if (const auto home = directory_from("HF_HOME")) return *home / "hub";
  if (const auto cache = directory_from("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
  if (const auto home = directory_from("HOME")) return *home / ".cache" / "huggingface" / "hub";
  return std::nullopt;
}

std::optional<std::filesystem::path> find_in_hf_cache(std::string_view id, std::string_view revision) {
  if (revision.empty()) revision = "main";
  if (!is_hub_id(id)) {
    throw Error(ErrorKind::invalid_argument, {.where = "model id '" + std::string(id.substr(0, 80)) + "'",
                                              .found = "not an id",
                                              .expected = "organisation/name"});
  }
  if (!is_revision(revision)) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "revision '" + std::string(revision.substr(0, 80)) + "'",
                 .found = "not a revision",
                 .expected = "a commit, branch or tag"});
  }
  const auto cache = hf_cache_directory();
  if (!cache) return std::nullopt;
  std::string folder = "models--" + std::string(id);
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  const std::filesystem::path model = *cache / folder;
  const std::filesystem::path ref = model / "refs" / revision;
  const std::string commit =
      path_exists(ref) && !is_directory_path(ref) ? read_ref(ref) : std::string(revision);
  const std::filesystem::path snapshot = model / "snapshots" / commit;
  if (!is_directory_path(snapshot)) return std::nullopt;
  return snapshot;
}

}  // namespace assay::formats
