#include "decision/model_files.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sha256.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::decision {
namespace {

namespace fs = std::filesystem;

class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() {
    directory_.write("a", "first");
    directory_.write("b", "second");
  }
  ModelFiles files() const { return ModelFiles({directory_ / "a", directory_ / "b"}); }

  TemporaryDirectory directory_;
};

TEST_F(ModelFilesTest, TheIdentityIsOfNamesSizesAndContentsAlone) {
  const std::string before = files().identity();
  EXPECT_EQ(before.size(), 64u);
  fs::last_write_time(directory_ / "a", fs::file_time_type::clock::now() - std::chrono::hours(24));
  EXPECT_EQ(files().identity(), before);
  const TemporaryDirectory elsewhere;
  elsewhere.write("a", "first");
  elsewhere.write("b", "second");
  EXPECT_EQ(ModelFiles({elsewhere / "a", elsewhere / "b"}).identity(), before);
  directory_.write("b", "Second");
  EXPECT_NE(files().identity(), before);
  EXPECT_NE(ModelFiles({directory_ / "a"}).identity(), files().identity());
}

TEST_F(ModelFilesTest, ALargeFilesLastByteCounts) {
  const std::size_t size = (std::size_t{64} << 20) + 1;
  directory_.write("a", std::string(size, 'x'));
  const std::string before = files().identity();
  directory_.write("a", std::string(size - 1, 'x') + "y");
  EXPECT_NE(files().identity(), before);
}

TEST_F(ModelFilesTest, TheStampTellsVersionsOfAFileApart) {
  const std::string before = files().stamp();
  EXPECT_EQ(files().stamp(), before);
  fs::last_write_time(directory_ / "a", fs::file_time_type::clock::now() - std::chrono::hours(24));
  EXPECT_NE(files().stamp(), before);
}

TEST_F(ModelFilesTest, AFileWrittenResizedOrRemovedSinceIsNamed) {
  const ModelFiles noted = files();
  EXPECT_NO_THROW(noted.check_unchanged());
  fs::last_write_time(directory_ / "b", fs::file_time_type::clock::now() - std::chrono::hours(1));
  expect_error(ErrorKind::io, {(directory_ / "b").string()}, [&] { noted.check_unchanged(); });
  expect_error(ErrorKind::io, {(directory_ / "b").string()}, [&] { noted.identity(); });
  const ModelFiles again = files();
  fs::resize_file(directory_ / "a", 2);
  expect_error(ErrorKind::io, {(directory_ / "a").string()}, [&] { again.check_unchanged(); });
  fs::remove(directory_ / "a");
  expect_error(ErrorKind::io, {(directory_ / "a").string()}, [&] { again.check_unchanged(); });
  expect_error(ErrorKind::io, {(directory_ / "a").string()}, [&] { files(); });
}

}  // namespace
}  // namespace assay::decision
