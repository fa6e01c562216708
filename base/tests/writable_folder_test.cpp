#include "base/writable_folder.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay {
namespace {

TEST(WritableFolder, IsMadeAndLeftEmpty) {
  const TemporaryDirectory directory;
  const std::filesystem::path folder = directory.path() / "a" / "b";
  require_writable_folder(folder);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(WritableFolder, WhereNoneCanBeIsAnError) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << "here already";
  expect_error(ErrorKind::io, "file", [&] { require_writable_folder(directory.path() / "file"); });
}

}  // namespace
}  // namespace assay
