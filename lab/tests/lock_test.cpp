#include "lab/window/lock.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "base/file.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::lab {
namespace {

/// A child that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& folder) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const DeviceLock lock = DeviceLock::acquire("cpu", "the holder's plan", {.folder = folder});
      [[maybe_unused]] const ssize_t written = ::write(ready[1], lock.file().c_str(), 1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    [[maybe_unused]] const ssize_t got = ::read(ready[0], &byte, 1);
    ::close(ready[0]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(DeviceLock, IsTakenAndGivenBack) {
  const TemporaryDirectory folder;
  for (int i = 0; i < 2; ++i) {
    const DeviceLock lock = DeviceLock::acquire("cpu", "mine", {.folder = folder.path(), .wait = false});
    EXPECT_EQ(lock.file(), folder / "assay-cpu.lock");
    EXPECT_THAT(read_text_file(lock.file()), testing::HasSubstr("\"pid\":" + std::to_string(::getpid())));
    EXPECT_THAT(read_text_file(lock.file()), testing::HasSubstr("\"mine\""));
    const DeviceLock other = DeviceLock::acquire("other", "mine", {.folder = folder.path(), .wait = false});
  }
  EXPECT_EQ(read_text_file(folder / "assay-cpu.lock"), "");
}

TEST(DeviceLock, NamesItsHolderWhereItMayNotWait) {
  const TemporaryDirectory folder;
  const Holder holder(folder.path());
  const auto acquire = [&] { DeviceLock::acquire("cpu", "mine", {.folder = folder.path(), .wait = false}); };
  expect_error(ErrorKind::unsupported, "process " + std::to_string(holder.pid()), acquire);
  expect_error(ErrorKind::unsupported, "the holder's plan", acquire);
}

TEST(DeviceLock, WaitsUntilTheHolderIsKilled) {
  const TemporaryDirectory folder;
  Holder holder(folder.path());
  std::atomic<bool> told{false};
  std::thread killer([&] {
    while (!told) std::this_thread::yield();
    holder.kill();
  });
  LockOptions options{.folder = folder.path()};
  std::string message;
  options.on_wait = [&](std::string_view line) {
    message = line;
    told = true;
  };
  const DeviceLock lock = DeviceLock::acquire("cpu", "mine", options);
  killer.join();
  EXPECT_THAT(message, testing::HasSubstr("the holder's plan"));
  EXPECT_THAT(read_text_file(lock.file()), testing::HasSubstr("\"mine\""));
}

TEST(DeviceLock, WaitingCanBeStopped) {
  const TemporaryDirectory folder;
  const Holder holder(folder.path());
  int looks = 0;
  const LockOptions options{.folder = folder.path(), .cancelled = [&] { return ++looks > 2; }};
  expect_error(ErrorKind::cancelled, "stopped", [&] { DeviceLock::acquire("cpu", "mine", options); });
}

TEST(DeviceLock, IsNotLedToAnotherFile) {
  const TemporaryDirectory folder;
  const auto victim = folder.write("victim", "precious");
  const auto lock = folder / "assay-cpu.lock";
  const auto acquire = [&] { DeviceLock::acquire("cpu", "mine", {.folder = folder.path()}); };
  std::filesystem::create_symlink(victim, lock);
  expect_error(ErrorKind::io, "symbolic link", acquire);
  std::filesystem::remove(lock);
  std::filesystem::create_hard_link(victim, lock);
  expect_error(ErrorKind::io, "several names", acquire);
  std::filesystem::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0666), 0);
  expect_error(ErrorKind::io, "not a regular file", acquire);
  std::filesystem::remove(lock);
  std::filesystem::create_directory(lock);
  expect_error(ErrorKind::io, "cannot be opened", acquire);
  EXPECT_EQ(read_text_file(victim), "precious");
}

TEST(DeviceLock, GarbageInTheFileIsNoHolder) {
  const TemporaryDirectory folder;
  for (const char* text : {"", "garbage", "[1]", R"({"pid": {"a": 1}, "plan": 7})"}) {
    folder.write("assay-cpu.lock", text);
    EXPECT_NO_THROW(DeviceLock::acquire("cpu", "mine", {.folder = folder.path(), .wait = false})) << text;
  }
}

TEST(DeviceLock, EverybodyMayUseTheFile) {
  const TemporaryDirectory folder;
  const mode_t before = ::umask(077);
  const DeviceLock lock = DeviceLock::acquire("cpu", "mine", {.folder = folder.path()});
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(lock.file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0666u);
}

TEST(DeviceLock, AFolderThatIsNotThereIsAnError) {
  expect_error(ErrorKind::io, "cannot be made",
               [] { DeviceLock::acquire("cpu", "mine", {.folder = "/no/such/folder"}); });
}

}  // namespace
}  // namespace assay::lab
