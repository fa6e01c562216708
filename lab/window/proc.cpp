#include "lab/window/proc.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/utf8.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kLargestFile = std::size_t{16} << 20;

[[noreturn]] void refuse_text(std::string_view file, std::string_view text, std::string expected) {
  throw Error(ErrorKind::malformed,
              {.where = std::string(file), .found = in_quotes(text), .expected = std::move(expected)});
}

template <class T>
std::optional<T> to_number(std::string_view word) {
  T value{};
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// The next word behind spaces and tabs, taken off the front.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kSpace = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kSpace));
  text.remove_prefix(word.size());
  return word;
}

/// What follows `key` in the line that begins with it.
std::optional<std::string_view> line_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) return line.substr(key.size());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

std::string read(const std::filesystem::path& file) {
  return read_text_file(file, kLargestFile);
}

/// A file that need not be there, or may go while it is read.
std::optional<std::string> try_read(const std::filesystem::path& file) {
  try {
    return read(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The number in a one-line file of /sys.
std::optional<double> try_read_number(const std::filesystem::path& file) {
  const std::optional<std::string> text = try_read(file);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  return to_number<double>(take_word(rest));
}

/// Sub-folders whose names are `prefix` and a number, by number.
std::vector<std::filesystem::path> numbered(const std::filesystem::path& folder, std::string_view prefix) {
  std::vector<std::pair<int, std::filesystem::path>> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(prefix)) continue;
    const auto number = to_number<int>(std::string_view(name).substr(prefix.size()));
    if (number) found.emplace_back(*number, entry->path());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> paths;
  paths.reserve(found.size());
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

CpuTicks parse_cpu_ticks(std::string_view proc_stat) {
  enum : std::size_t { user, nice, system, idle, iowait, irq, softirq, steal, count };
  std::optional<std::string_view> line = line_after(proc_stat, "cpu ");
  if (!line) refuse_text("/proc/stat", proc_stat, "a line of all processors");
  std::array<std::uint64_t, count> ticks{};
  for (std::uint64_t& value : ticks) {
    const auto number = to_number<std::uint64_t>(take_word(*line));
    if (!number) refuse_text("/proc/stat", proc_stat, "eight counts in the line of all processors");
    value = *number;
  }
  return {.busy = ticks[user] + ticks[nice] + ticks[system] + ticks[irq] + ticks[softirq],
          .idle = ticks[idle] + ticks[iowait],
          .steal = ticks[steal]};
}

LoadAverage parse_load(std::string_view proc_loadavg) {
  LoadAverage load;
  std::string_view rest = proc_loadavg;
  for (double* value : {&load.one_minute, &load.five_minutes, &load.fifteen_minutes}) {
    const auto number = to_number<double>(take_word(rest));
    if (!number) refuse_text("/proc/loadavg", proc_loadavg, "three load averages");
    *value = *number;
  }
  return load;
}

std::size_t parse_available_memory(std::string_view proc_meminfo) {
  std::optional<std::string_view> line = line_after(proc_meminfo, "MemAvailable:");
  const auto kib = line ? to_number<std::size_t>(take_word(*line)) : std::nullopt;
  if (!kib) refuse_text("/proc/meminfo", proc_meminfo, "a line MemAvailable");
  return *kib * 1024;
}

std::vector<double> parse_cpu_megahertz(std::string_view proc_cpuinfo) {
  std::vector<double> clocks;
  while (!proc_cpuinfo.empty()) {
    const std::string_view line = proc_cpuinfo.substr(0, proc_cpuinfo.find('\n'));
    proc_cpuinfo.remove_prefix(std::min(line.size() + 1, proc_cpuinfo.size()));
    const std::size_t colon = line.find(':');
    if (!line.starts_with("cpu MHz") || colon == std::string_view::npos) continue;
    std::string_view rest = line.substr(colon + 1);
    const auto megahertz = to_number<double>(take_word(rest));
    if (!megahertz) refuse_text("/proc/cpuinfo", line, "a clock in MHz");
    clocks.push_back(*megahertz);
  }
  return clocks;
}

ProcessTicks parse_process(std::string_view proc_pid_stat) {
  const std::size_t open = proc_pid_stat.find(" (");
  const std::size_t close = proc_pid_stat.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open + 2) {
    refuse_text("/proc/<pid>/stat", proc_pid_stat, "a pid and a name in parentheses");
  }
  ProcessTicks process;
  const auto pid = to_number<int>(proc_pid_stat.substr(0, open));
  process.name = printable(proc_pid_stat.substr(open + 2, close - open - 2));
  // Fields are numbered from one; what follows the name begins with the third.
  std::array<std::uint64_t, 23> fields{};
  std::string_view rest = proc_pid_stat.substr(close + 1);
  for (std::size_t field = 3; field < fields.size(); ++field) {
    const std::string_view word = take_word(rest);
    if (field < 14) continue;  // the state, and numbers that may be negative
    const auto number = to_number<std::uint64_t>(word);
    const bool may_be_negative = field >= 18 && field <= 21;  // priority, nice, threads, itrealvalue
    if (!number && !may_be_negative) refuse_text("/proc/<pid>/stat", proc_pid_stat, "22 fields");
    fields[field] = number.value_or(0);
  }
  if (!pid) refuse_text("/proc/<pid>/stat", proc_pid_stat, "a pid");
  process.pid = *pid;
  process.own = fields[14] + fields[15];
  process.children = fields[16] + fields[17];
  process.started = fields[22];
  return process;
}

ProcReader::ProcReader(std::filesystem::path proc, std::filesystem::path sys)
    : proc_(std::move(proc)), sys_(std::move(sys)) {}

CpuTicks ProcReader::cpu_ticks() const {
  return parse_cpu_ticks(read(proc_ / "stat"));
}

LoadAverage ProcReader::load() const {
  return parse_load(read(proc_ / "loadavg"));
}

std::size_t ProcReader::available_memory() const {
  return parse_available_memory(read(proc_ / "meminfo"));
}

std::uint64_t ProcReader::tree_ticks(int pid) const {
  const std::optional<std::string> text = try_read(proc_ / std::to_string(pid) / "stat");
  if (!text || text->empty()) return 0;
  const ProcessTicks process = parse_process(*text);
  return process.own + process.children;
}

std::vector<ProcessTicks> ProcReader::processes() const {
  std::vector<ProcessTicks> processes;
  for (const std::filesystem::path& folder : numbered(proc_, "")) {
    const std::optional<std::string> text = try_read(folder / "stat");
    if (text && !text->empty()) processes.push_back(parse_process(*text));
  }
  return processes;
}

std::vector<double> ProcReader::cpu_megahertz() const {
  std::vector<double> clocks;
  for (const std::filesystem::path& cpu : numbered(sys_ / "devices/system/cpu", "cpu")) {
    const auto kilohertz = try_read_number(cpu / "cpufreq/scaling_cur_freq");
    if (kilohertz) clocks.push_back(*kilohertz / 1000);
  }
  if (!clocks.empty()) return clocks;
  return parse_cpu_megahertz(try_read(proc_ / "cpuinfo").value_or(""));
}

std::vector<ProcReader::Temperature> ProcReader::temperatures() const {
  std::vector<Temperature> temperatures;
  for (const std::filesystem::path& zone : numbered(sys_ / "class/thermal", "thermal_zone")) {
    const auto millidegrees = try_read_number(zone / "temp");
    if (!millidegrees) continue;
    const std::string type = try_read(zone / "type").value_or("unknown\n");
    temperatures.push_back({type.substr(0, type.find('\n')), *millidegrees / 1000});
  }
  return temperatures;
}

}  // namespace assay::lab
