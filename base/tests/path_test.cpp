#include "base/path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

TEST(Path, WhatStandsThereIsFoundAndWhatDoesNotIsNot) {
  const TemporaryDirectory folder;
  const fs::path file = folder.write("file", "x");
  EXPECT_TRUE(path_exists(file));
  EXPECT_TRUE(path_exists(folder.path()));
  EXPECT_FALSE(path_exists(folder / "absent"));
  EXPECT_FALSE(path_exists(file / "below"));
  EXPECT_FALSE(path_exists(""));
  EXPECT_TRUE(is_directory_path(folder.path()));
  EXPECT_FALSE(is_directory_path(file));
  EXPECT_FALSE(is_directory_path(folder / "absent"));
}

TEST(Path, LinksAreFollowed) {
  const TemporaryDirectory folder;
  fs::create_symlink(folder.write("file", "x"), folder / "to_file");
  fs::create_directory_symlink(folder.path(), folder / "to_folder");
  EXPECT_TRUE(path_exists(folder / "to_file"));
  EXPECT_TRUE(is_directory_path(folder / "to_folder"));
  EXPECT_EQ(resolved_path(folder / "to_folder/to_file/../absent"), resolved_path(folder.path()) / "absent");
}

TEST(Path, ALinkToWhatIsNotThereIsAnErrorThatNamesBoth) {
  const TemporaryDirectory folder;
  fs::create_symlink("gone.json", folder / "link.json");
  expect_error(ErrorKind::missing, "link.json: a link to gone.json",
               [&] { path_exists(folder / "link.json"); });
  expect_error(ErrorKind::missing, "gone.json", [&] { is_directory_path(folder / "link.json"); });
}

TEST(Path, WhatCannotBeExaminedIsAnErrorThatNamesPathAndReason) {
  const TemporaryDirectory folder;
  fs::create_symlink("loop", folder / "loop");
  const fs::path below_the_loop = folder / "loop/file";
  const fs::path too_long = folder / std::string(5000, 'x');
  for (const fs::path& path : {folder / "loop", below_the_loop}) {
    expect_error(ErrorKind::io, "loop: cannot be examined: Too many levels",
                 [&] { path_exists(folder / "loop"); });
    expect_error(ErrorKind::io, "Too many levels", [&] { is_directory_path(path); });
    expect_error(ErrorKind::io, "Too many levels", [&] { list_directory(path); });
    expect_error(ErrorKind::io, "Too many levels", [&] { make_directories(path); });
    expect_error(ErrorKind::io, "Too many levels", [&] { resolved_path(path); });
  }
  expect_error(ErrorKind::io, "File name too long", [&] { path_exists(too_long); });
  expect_error(ErrorKind::io, "File name too long", [&] { is_directory_path(too_long); });
  expect_error(ErrorKind::io, "File name too long", [&] { list_directory(too_long); });
  expect_error(ErrorKind::io, "File name too long", [&] { make_directories(too_long); });
}

TEST(Path, AFolderThatMayNotBeReadIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not bind the superuser";
  const TemporaryDirectory folder;
  const fs::path closed = folder / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::none);
  expect_error(ErrorKind::io, "Permission denied", [&] { path_exists(closed / "file"); });
  expect_error(ErrorKind::io, "Permission denied", [&] { is_directory_path(closed / "file"); });
  expect_error(ErrorKind::io, "Permission denied", [&] { list_directory(closed); });
  expect_error(ErrorKind::io, "Permission denied", [&] { make_directories(closed / "more"); });
  fs::permissions(closed, fs::perms::owner_all);
}

TEST(Path, ADirectoryIsListedInOrder) {
  const TemporaryDirectory folder;
  for (const char* name : {"b", "a", "c"}) folder.write(name, "");
  fs::create_symlink("gone", folder / "d");  // listed, not followed
  EXPECT_EQ(list_directory(folder.path()),
            (std::vector<fs::path>{folder / "a", folder / "b", folder / "c", folder / "d"}));
  expect_error(ErrorKind::missing, "absent", [&] { list_directory(folder / "absent"); });
  expect_error(ErrorKind::io, "Not a directory", [&] { list_directory(folder / "a"); });
}

TEST(Path, DirectoriesAreMadeWhereTheyAreNotThereYet) {
  const TemporaryDirectory folder;
  make_directories(folder / "a/b/c");
  make_directories(folder / "a/b/c");
  EXPECT_TRUE(is_directory_path(folder / "a/b/c"));
  const fs::path file = folder.write("file", "x");
  expect_error(ErrorKind::io, "file", [&] { make_directories(file / "below"); });
}

}  // namespace
}  // namespace assay
