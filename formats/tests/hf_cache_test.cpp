#include "formats/hf_cache.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "formats/tests/support.hpp"

namespace assay::formats {
namespace {

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
constexpr std::array<const char*, 4> kVariables = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"};

class HfCacheTest : public ::testing::Test {
 protected:
  HfCacheTest() {
    for (const char* name : kVariables) {
      if (const char* value = std::getenv(name)) saved_[name] = value;
      ::unsetenv(name);
    }
    ::setenv("HF_HUB_CACHE", directory_.path().c_str(), 1);
  }
  ~HfCacheTest() override {
    for (const char* name : kVariables) ::unsetenv(name);
    for (const auto& [name, value] : saved_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  void download(const std::string& folder) {
    directory_.write(folder + "/refs/main", std::string(kCommit) + "\n");
    directory_.write(folder + "/refs/v1.0", kCommit);
    directory_.write(folder + "/snapshots/" + kCommit + "/config.json", "{}");
  }

  test::TemporaryDirectory directory_;
  std::map<std::string, std::string> saved_;
};

TEST_F(HfCacheTest, FindsASnapshotByBranchTagAndCommit) {
  download("models--Qwen--Qwen3.5-4B-Base");
  const auto expected = directory_ / ("models--Qwen--Qwen3.5-4B-Base/snapshots/" + std::string(kCommit));
  for (const char* revision : {"", "main", "v1.0", kCommit}) {
    EXPECT_EQ(find_in_hf_cache("Qwen/Qwen3.5-4B-Base", revision), expected) << revision;
  }
  EXPECT_EQ(find_in_hf_cache("Qwen/Qwen3.5-4B-Base", "v2.0"), std::nullopt);
  EXPECT_EQ(find_in_hf_cache("Qwen/Other", ""), std::nullopt);
}

TEST_F(HfCacheTest, FindsAModelWithoutAnOrganisation) {
  download("models--gpt2");
  EXPECT_TRUE(find_in_hf_cache("gpt2", ""));
}

TEST_F(HfCacheTest, IdsAndRevisionsCannotLeaveTheCache) {
  for (const char* id : {"../etc", "a/../b", "a/..", "/etc", "a/b/c", "", "a/", "/b", ".", "..", "a/.b",
                         "a\\b", "a b", "a/b\n", "--/x"}) {
    EXPECT_FALSE(is_hub_id(id)) << id;
    EXPECT_EQ(test::error_of([&] { find_in_hf_cache(id, ""); }).kind(), ErrorKind::invalid_argument) << id;
  }
  for (const char* revision : {"../..", "/etc", "a//b", "..", "refs/../x", "a b", "a/"}) {
    EXPECT_EQ(test::error_of([&] { find_in_hf_cache("a/b", revision); }).kind(), ErrorKind::invalid_argument)
        << revision;
  }
}

TEST_F(HfCacheTest, ARefThatLeadsElsewhereIsRefused) {
  directory_.write("models--a--b/refs/main", "../../../etc");
  EXPECT_EQ(test::error_of([] { find_in_hf_cache("a/b", ""); }).kind(), ErrorKind::malformed);
}

TEST_F(HfCacheTest, ALinkThatLeadsNowhereIsNoMissingDownload) {
  download("models--a--b");
  const auto snapshot = directory_ / ("models--a--b/snapshots/" + std::string(kCommit));
  std::filesystem::remove_all(snapshot);
  std::filesystem::create_symlink("gone", snapshot);
  EXPECT_EQ(test::error_of([] { find_in_hf_cache("a/b", ""); }).kind(), ErrorKind::missing);
  std::filesystem::remove(snapshot);
  std::filesystem::create_symlink(kCommit, snapshot);
  EXPECT_EQ(test::error_of([] { find_in_hf_cache("a/b", ""); }).kind(), ErrorKind::io);
}

TEST_F(HfCacheTest, TheEnvironmentSaysWhereTheCacheIs) {
  ::setenv("HF_HOME", "/hf", 1);
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  ::setenv("HOME", "/home/u", 1);
  EXPECT_EQ(hf_cache_directory(), directory_.path());
  ::unsetenv("HF_HUB_CACHE");
  EXPECT_EQ(hf_cache_directory(), "/hf/hub");
  ::unsetenv("HF_HOME");
  EXPECT_EQ(hf_cache_directory(), "/xdg/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "", 1);
  EXPECT_EQ(hf_cache_directory(), "/home/u/.cache/huggingface/hub");
  ::unsetenv("HOME");
  EXPECT_EQ(hf_cache_directory(), std::nullopt);
}

}  // namespace
}  // namespace assay::formats
