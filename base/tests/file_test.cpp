#include "base/file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/bus_error.hpp"
#include "base/sha256.hpp"
#include "base/tests/expect_error.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "assay_file_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, std::string_view contents) const {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
    return folder_ / name;
  }
  fs::path pipe(const std::string& name) const {
    const fs::path path = folder_ / name;
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(File, AMappingShowsTheWholeFileAndOutlivesItsFirstOwner) {
  const std::string contents(10'000, 'x');
  MappedFile copy = MappedFile::open(write("a", "other"));
  {
    const MappedFile mapped = MappedFile::open(write("b", contents));
    EXPECT_EQ(mapped.path(), folder_ / "b");
    copy = mapped;
  }
  fs::remove(folder_ / "b");
  EXPECT_EQ(text_of(copy.bytes()), contents);
}

TEST_F(File, ReleasedPagesReadTheSameAgain) {
  std::string contents(100'000, '\0');
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>('a' + i % 23);
  const MappedFile mapped = MappedFile::open(write("a", contents));
  mapped.release(mapped.bytes());
  mapped.release(mapped.bytes().subspan(5000, 70'000));
  mapped.release(mapped.bytes().subspan(10, 1));
  mapped.release({});
  EXPECT_EQ(text_of(mapped.bytes()), contents);
}

TEST_F(File, AProgramThatReadsBeyondAShortenedFilesEndNamesIt) {
  const fs::path weights = write("weights", std::string(3 << 16, 'x'));
  const auto read_after_shortening = [&] {
    report_shortened_files();
    const MappedFile other = MappedFile::open(weights);
    const MappedFile file = MappedFile::open(weights);
    fs::resize_file(weights, 10);
    volatile std::byte last = file.bytes().back();
    static_cast<void>(last);
  };
  EXPECT_EXIT(read_after_shortening(), testing::ExitedWithCode(2),
              "weights: was shortened while it was read");
}

TEST_F(File, ABusErrorElsewhereStillEndsTheProgramByItsSignal) {
  const auto raise_bus_error = [] {
    report_shortened_files();
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raise_bus_error(), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(File, AnEmptyFileMapsToNoBytesAndReadsAsNoText) {
  const fs::path path = write("empty", "");
  const MappedFile mapped = MappedFile::open(path);
  EXPECT_TRUE(mapped.bytes().empty());
  mapped.release(mapped.bytes());
  EXPECT_EQ(read_text_file(path), "");
}

TEST_F(File, WhatIsNotAFileIsRefusedByName) {
  expect_error(ErrorKind::missing, "absent", [&] { MappedFile::open(folder_ / "absent"); });
  expect_error(ErrorKind::missing, "absent", [&] { read_text_file(folder_ / "absent"); });
  expect_error(ErrorKind::io, "a directory", [&] { MappedFile::open(folder_); });
  expect_error(ErrorKind::io, "a directory", [&] { read_text_file(folder_); });
  const fs::path below_a_file = write("plain", "x") / "below";
  expect_error(ErrorKind::io, "below", [&] { read_text_file(below_a_file); });
  expect_error(ErrorKind::io, "regular", [&] { MappedFile::open("/dev/null"); });
}

TEST_F(File, APipeWithoutAWriterIsRefusedAndDoesNotHang) {
  const fs::path path = pipe("idle");
  expect_error(ErrorKind::io, "regular", [&] { MappedFile::open(path); });
  expect_error(ErrorKind::io, "idle: a pipe that nobody writes to", [&] { read_text_file(path); });
}

TEST_F(File, APipeWhoseWriterComesLateIsReadWhateverItWrites) {
  for (const std::string text : {"", "text"}) {
    const fs::path path = pipe("late" + text);
    std::thread writer([&] {
      const int file = ::open(path.c_str(), O_WRONLY);  // waits for the reader
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
      ::close(file);
    });
    EXPECT_EQ(read_text_file(path), text);
    writer.join();
  }
}

TEST_F(File, APipeIsReadToItsEndHoweverSlowItsWriter) {
  const fs::path path = pipe("busy");
  const int keeps_it_open = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(keeps_it_open, 0);
  const int writer = ::open(path.c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  const std::string part(50'000, 'p');
  std::thread slow([&] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(::write(writer, part.data(), part.size()), static_cast<ssize_t>(part.size()));
    }
    ::close(writer);
    ::close(keeps_it_open);
  });
  const std::string text = read_text_file(path);
  slow.join();
  EXPECT_EQ(text, part + part + part);
}

TEST_F(File, AFileThatStatesNoSizeIsReadToItsEnd) {
  const std::string text = read_text_file("/proc/self/status");
  EXPECT_NE(text.find("VmRSS"), std::string::npos);
}

TEST_F(File, TheLimitHoldsExactlyForFilesAndForWhatStatesNoSize) {
  const fs::path path = write("five", "12345");
  EXPECT_EQ(read_text_file(path, 5), "12345");
  expect_error(ErrorKind::limit_exceeded, "at most 4", [&] { read_text_file(path, 4); });
  EXPECT_EQ(read_text_file(write("empty", ""), 0), "");
  expect_error(ErrorKind::limit_exceeded, "at most 10", [] { read_text_file("/proc/self/status", 10); });
  expect_error(ErrorKind::limit_exceeded, "at most 65536", [] { read_text_file("/dev/zero", 65536); });
}

TEST_F(File, AFileOfAnySizeReadsWhole) {
  for (const std::size_t size : {1ul, 4095ul, 4096ul, 4097ul, 100'000ul}) {
    const std::string contents(size, 'z');
    EXPECT_EQ(read_text_file(write("sized", contents)), contents) << size;
  }
}

TEST_F(File, AtomicWritesMakeAndReplace) {
  const fs::path path = folder_ / "out.json";
  write_file_atomically(path, "first");
  EXPECT_EQ(read_text_file(path), "first");
  write_file_atomically(path, std::string(1'000'000, 's'));
  EXPECT_EQ(read_text_file(path), std::string(1'000'000, 's'));
  write_file_atomically(path, "");
  EXPECT_EQ(read_text_file(path), "");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, ANewFileHasThePermissionsThatTheUmaskLeaves) {
  const mode_t before = ::umask(077);
  write_file_atomically(folder_ / "private", "x");
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "private").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
}

TEST_F(File, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const fs::path path = folder_ / "kept";
  write_file_atomically(path, "old");
  // A file size limit fails a write halfway, as a full disk does.
  struct rlimit limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  struct rlimit small = limit;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(ErrorKind::io, "kept", [&] { write_file_atomically(path, std::string(100'000, 'n')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, WhatCannotBeWrittenIsRefusedByName) {
  expect_error(ErrorKind::missing, "absent", [&] { write_file_atomically(folder_ / "absent" / "f", "x"); });
  expect_error(ErrorKind::io, "plain", [&] { write_file_atomically(write("plain", "x") / "f", "x"); });
  fs::create_directory(folder_ / "sub");
  expect_error(ErrorKind::io, "a directory", [&] { write_file_atomically(folder_ / "sub", "x"); });
  expect_error(ErrorKind::io, "regular", [&] { write_file_atomically(pipe("fifo"), "x"); });
  EXPECT_EQ(entries(), 3u);
}

TEST_F(File, ADeviceIsNeverReplaced) {
  expect_error(ErrorKind::io, "/dev/null", [] { write_file_atomically("/dev/null", "x"); });
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(File, AnUnwritableFolderIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not bind the superuser";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  expect_error(ErrorKind::io, "beside", [&] { write_file_atomically(folder_ / "f", "x"); });
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(File, ManyWritersOfOneFileLeaveOneWholeText) {
  const fs::path path = folder_ / "shared";
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 5; ++i) write_file_atomically(path, std::string(50'000, letter));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string text = read_text_file(path);
  EXPECT_EQ(text.size(), 50'000u);
  EXPECT_EQ(text, std::string(50'000, text.front()));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(File, Sha256OfAFileIsThatOfItsBytes) {
  // FIPS 180-4 examples: the empty message and "abc".
  EXPECT_EQ(sha256_hex(write("empty", "")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(write("abc", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string contents((std::size_t{33} << 20) + 5, 'q');
  EXPECT_EQ(sha256_hex(write("large", contents)), sha256_hex(std::as_bytes(std::span(contents))));
  expect_error(ErrorKind::missing, "absent", [&] { sha256_hex(folder_ / "absent"); });
  expect_error(ErrorKind::io, "a directory", [&] { sha256_hex(folder_); });
}

}  // namespace
}  // namespace assay
