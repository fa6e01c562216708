#include "lab/window/window.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/window/worker.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

/// A worker that is a shell script.
WorkerOptions shell(const std::string& script, double timeout = 30) {
  return {.command = {"/bin/sh", "-c", script}, .name = "form a, process 0", .timeout_seconds = timeout};
}

TEST(WorkerProcess, AnswersAreReadByLine) {
  WorkerProcess worker(
      shell("read q; echo '{\"n\":1}'; read q; printf '{\"n\"'; sleep 0.05; echo ':2}'; read q"));
  EXPECT_EQ(worker.ask({{"run", 0}})["n"], 1);
  EXPECT_EQ(worker.ask({{"run", 0}})["n"], 2);
}

TEST(WorkerProcess, HowAWorkerEndedIsSaid) {
  const auto ask = [](const std::string& script) { WorkerProcess(shell(script)).ask({{"run", 0}}); };
  expect_error(ErrorKind::io, "form a, process 0: the worker ended with status 3",
               [&] { ask("read q; exit 3"); });
  expect_error(ErrorKind::io, "ended by signal 9", [&] { ask("read q; kill -9 $$"); });
  expect_error(ErrorKind::io, "nonsense", [&] { ask("read q; echo nonsense"); });
  expect_error(ErrorKind::missing, "no such model", [&] {
    ask("read q; echo '{\"error\":{\"kind\":\"missing\",\"message\":\"no such model\"}}'");
  });
  expect_error(ErrorKind::io, "cannot be started",
               [] { WorkerProcess({.command = {"/no/such/program"}, .name = "form a"}); });
}

TEST(WorkerProcess, AWorkerThatHangsIsGivenUpAndEnded) {
  WorkerProcess worker(shell("read q; exec sleep 1000", 0.2));
  expect_error(ErrorKind::io, "no answer in 0.2 s", [&] { worker.ask({{"run", 0}}); });
  const int pid = worker.pid();
  worker.end();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(WorkerProcess, StopsWaitingOnceASignalCame) {
  const StopSignals signals;
  WorkerOptions options = shell("read q; exec sleep 1000");
  options.stop_descriptor = signals.descriptor();
  WorkerProcess worker(options);
  EXPECT_FALSE(signals.requested());
  ::raise(SIGTERM);
  EXPECT_TRUE(signals.requested());
  expect_error(ErrorKind::cancelled, "signal", [&] { worker.ask({{"run", 0}}); });
}

/// The real worker on the other side of a pipe, in a thread.
TEST(Worker, MakesReadyRunsAndReportsErrors) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  ASSERT_EQ(::pipe(in.data()), 0);
  ASSERT_EQ(::pipe(out.data()), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(in[1]);
    ::_exit(run_worker(in[0], out[1]));
  }
  ::close(in[0]);
  ::close(out[1]);
  const std::string plan = Json{
      {"schema", "assay.window-plan/1"},
      {"name", "p"},
      {"device", "cpu"},
      {"items", {{{"name", "n"}, {"op", "rms_norm"}, {"sizes", {{"rows", 2}, {"dim", 64}}}}}},
      {"forms", {{{"name", "f"}, {"threads", 1}}}},
      {"repetitions", 2}}.dump();
  const std::string questions =
      Json{{"plan", plan}, {"file", "p.json"}, {"form", 0}}.dump() + "\n" +
      "{\"run\":0,\"timed\":false}\n{\"run\":0,\"timed\":true}\n{\"run\":7,\"timed\":true}\n";
  ASSERT_EQ(::write(in[1], questions.data(), questions.size()), static_cast<ssize_t>(questions.size()));
  ::close(in[1]);
  std::string answers;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(out[0], part.data(), part.size())) > 0;) {
    answers.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(out[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  std::vector<Json> lines;
  for (std::size_t at = 0; at < answers.size(); at = answers.find('\n', at) + 1) {
    lines.push_back(Json::parse(answers.substr(at, answers.find('\n', at) - at)));
  }
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0]["forms"].get<std::string>(), testing::HasSubstr("rms_norm="));
  EXPECT_EQ(lines[0]["threads"], 1);
  EXPECT_GT(lines[2]["seconds"].get<double>(), 0);
  EXPECT_GE(lines[2]["start"].get<std::int64_t>(), lines[1]["start"].get<std::int64_t>());
  EXPECT_TRUE(lines[3].contains("error"));
}

/// A window whose workers are shell scripts: each answer takes no time and says so many seconds.
class ScriptedWindow : public testing::Test {
 protected:
  ScriptedWindow() {
    plan_ = parse_window_plan(
        Json{{"schema", "assay.window-plan/1"},
             {"name", "scripted"},
             {"device", "cpu"},
             {"items", {{{"name", "n"}, {"op", "rms_norm"}, {"sizes", {{"rows", 2}, {"dim", 64}}}}}},
             {"forms", {{{"name", "slow"}}, {{"name", "fast"}}}},
             {"repetitions", 4},
             {"timeout_seconds", 30}}
            .dump(),
        "plan.json");
    options_.lock.folder = folder_.path();
  }

  /// Of form 0 two seconds, of form 1 one; `extra` runs before every answer to a timed run.
  void use_script(const std::string& extra) {
    options_.worker_command = {
        "/bin/sh", "-c",
        "seconds=2.0; while read -r q; do case \"$q\" in "
        "*'\"plan\"'*) case \"$q\" in *'\"form\":1'*) seconds=1.0;; esac; "
        "echo '{\"forms\":\"rms_norm=x\",\"threads\":1,\"resident_bytes\":1000,\"items\":[{\"model\":\"\","
        "\"fp32_operations\":1e9,\"bf16_operations\":0,\"bytes\":0}]}';; "
        "*true*) " +
            extra +
            " echo \"{\\\"start\\\":5000000000,\\\"seconds\\\":$seconds}\";; "
            "*) echo '{\"start\":0,\"seconds\":1}';; esac; done"};
  }

  Json run() {
    const StopSignals signals;
    return to_receipt(run_window(plan_, options_, signals));
  }

  TemporaryDirectory folder_;
  WindowPlan plan_;
  WindowOptions options_;
};

TEST_F(ScriptedWindow, TheReceiptHoldsEverySampleAndTheVerdict) {
  use_script("");
  plan_.ceilings.fp32_flops = 1e9 / 1.5;
  const Json receipt = run();
  EXPECT_EQ(receipt["kind"], "window");
  const Json& result = receipt["result"];
  ASSERT_EQ(result["samples"].size(), 16u);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(result["samples"][i]["order"], i);
  EXPECT_TRUE(result["samples"][0]["event_seconds"].is_null());
  ASSERT_EQ(result["times"].size(), 2u);
  EXPECT_EQ(result["times"][0]["median"], 2.0);
  EXPECT_EQ(result["times"][0]["count"], 8);
  EXPECT_FALSE(result["times"][0]["suspicious"].get<bool>());
  EXPECT_TRUE(result["times"][1]["suspicious"].get<bool>()) << "1 s is below the floor of 1.5 s";
  ASSERT_EQ(result["pairs"].size(), 1u);
  EXPECT_EQ(result["pairs"][0]["verdict"], "faster");
  EXPECT_EQ(result["pairs"][0]["ratio"], 2.0);
  EXPECT_EQ(result["pairs"][0]["wins"], 8);
  EXPECT_EQ(result["clean"], result["contention"].empty());
  EXPECT_EQ(receipt["subject"]["plan"]["sha256"], plan_.sha256);
  EXPECT_EQ(receipt["subject"]["forms"][1]["forms"], "rms_norm=x");
  const std::string text = to_text(receipt);
  for (const char* part : {"scripted", "SUSPICIOUS", "fast against slow: faster, 8/8 won"}) {
    EXPECT_THAT(text, testing::HasSubstr(part));
  }
}

TEST_F(ScriptedWindow, AWorkersDeathEndsTheWindowAndSaysWhich) {
  use_script("kill -9 $$;");
  expect_error(ErrorKind::io, "process 0: the worker ended by signal 9", [&] { run(); });
  EXPECT_EQ(read_text_file(folder_ / "assay-cpu.lock"), "") << "the lock is given back";
}

TEST_F(ScriptedWindow, AHangEndsTheWindow) {
  use_script("exec sleep 1000;");
  plan_.timeout_seconds = 0.3;
  expect_error(ErrorKind::io, "no answer in 0.3 s", [&] { run(); });
}

TEST_F(ScriptedWindow, MemoryThatIsNotThereIsRefusedBeforeAnythingStarts) {
  options_.worker_command = {"/no/such/program"};
  plan_.items[0].sizes = {{"rows", std::size_t{1} << 24}, {"dim", std::size_t{1} << 24}};
  expect_error(ErrorKind::limit_exceeded, "2 processes alive at once", [&] { run(); });
}

TEST_F(ScriptedWindow, TimesOfTwoWindowsAreRefused) {
  use_script("");
  const Receipt first = write_receipt(folder_ / "receipts", run());
  const Receipt second = write_receipt(folder_ / "receipts", run());
  EXPECT_NO_THROW(require_one_window(first, first));
  const auto compare = [&] { require_one_window(first, second); };
  for (const Receipt& receipt : {first, second}) {
    expect_error(ErrorKind::mismatch, receipt.body["result"]["window"]["id"].get<std::string>(), compare);
    expect_error(ErrorKind::mismatch, receipt.sha256, compare);
  }
  const Receipt gate =
      write_receipt(folder_ / "receipts", make_receipt(ReceiptKind::gate, Json::object(), Json::object()));
  expect_error(ErrorKind::mismatch, "a gate receipt", [&] { require_one_window(first, gate); });
}

}  // namespace
}  // namespace assay::lab
