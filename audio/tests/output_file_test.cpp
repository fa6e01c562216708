#include "audio/output_file.hpp"

#include <cstdio>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include "base/file.hpp"
#include "base/path.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::audio {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(OutputFile, AppearsWhenItIsComplete) {
  const TemporaryDirectory directory;
  {
    OutputFile file(directory / "song");
    EXPECT_EQ(file.write(bytes_of("abcdef")), 6u);
    EXPECT_EQ(file.seek(2, SEEK_SET), 2);
    EXPECT_EQ(file.write(bytes_of("X")), 1u);
    EXPECT_EQ(file.size(), 6);
    EXPECT_FALSE(path_exists(directory / "song"));
    file.commit();
    EXPECT_EQ(read_text_file(directory / "song"), "abXdef");
  }
  EXPECT_EQ(list_directory(directory.path()).size(), 1u);
}

TEST(OutputFile, LeavesWhatStoodThereWhenItIsNotCommitted) {
  const TemporaryDirectory directory;
  directory.write("song", "old");
  {
    OutputFile file(directory / "song");
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(read_text_file(directory / "song"), "old");
  EXPECT_EQ(list_directory(directory.path()).size(), 1u);
}

TEST(OutputFile, CanBeClearedAwayInAHurry) {
  const TemporaryDirectory directory;
  OutputFile file(directory / "song");
  file.write(bytes_of("part"));
  EXPECT_EQ(list_directory(directory.path()).size(), 1u);
  remove_unfinished_files();
  EXPECT_TRUE(list_directory(directory.path()).empty());
}

TEST(OutputFile, RefusesFoldersAndDevices) {
  const TemporaryDirectory directory;
  expect_error(ErrorKind::io, "a directory", [&] { OutputFile file(directory.path()); });
  expect_error(ErrorKind::io, "no regular file", [&] { OutputFile file("/dev/full"); });
  expect_error(ErrorKind::missing, "cannot be created", [&] { OutputFile file(directory / "none/song"); });
}

}  // namespace
}  // namespace assay::audio
