#include "cli/line_reader.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace assay::cli {
namespace {

/// A file of the test's own, gone with it.
class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

using Status = LineReader::Status;

TEST(LineReader, GivesLinesWithoutTheirEnds) {
  const TextFile file("a\n\r\nb\r\nlast");
  LineReader reader(file.path());
  std::string line;
  for (const char* expected : {"a", "", "b", "last"}) {
    ASSERT_EQ(reader.next(line, 100), Status::line);
    EXPECT_EQ(line, expected);
  }
  EXPECT_EQ(reader.next(line, 100), Status::end);
  EXPECT_EQ(reader.next(line, 100), Status::end);
}

TEST(LineReader, ALineLongerThanABlockIsWhole) {
  const std::string text(200'000, 'x');
  const TextFile file(text + "\n" + text + "y");
  LineReader reader(file.path());
  std::string line;
  ASSERT_EQ(reader.next(line, 1u << 20), Status::line);
  EXPECT_EQ(line, text);
  ASSERT_EQ(reader.next(line, 1u << 20), Status::line);
  EXPECT_EQ(line, text + "y");
}

TEST(LineReader, ALinePastTheLimitIsReportedAndTheNextOneRead) {
  const TextFile file(std::string(100'000, 'x') + "\nshort\n");
  LineReader reader(file.path());
  std::string line;
  EXPECT_EQ(reader.next(line, 1000), Status::too_long);
  EXPECT_TRUE(line.empty());
  ASSERT_EQ(reader.next(line, 1000), Status::line);
  EXPECT_EQ(line, "short");
}

TEST(LineReader, TheRestIsBounded) {
  const TextFile file("abc\ndef");
  EXPECT_EQ(LineReader(file.path()).rest(7), "abc\ndef");
  EXPECT_THROW(LineReader(file.path()).rest(6), Error);
}

TEST(LineReader, AMissingFileIsNamed) {
  try {
    LineReader("/nowhere/requests.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::missing);
    EXPECT_NE(std::string(error.what()).find("/nowhere/requests.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::cli
