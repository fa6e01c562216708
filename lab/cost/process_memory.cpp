#include "lab/cost/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"

namespace assay::lab {
namespace {

constexpr const char* kRollup = "/proc/self/smaps_rollup";
constexpr const char* kStatus = "/proc/self/status";
// Each holds under 2 KiB; a kernel that adds fields has room.
constexpr std::size_t kMostValue = std::size_t{64} << 10;

constexpr std::array<std::pair<const char*, std::size_t ProcessMemory::*>, 7> kFields{{
    {"resident", &ProcessMemory::resident},
    {"proportional", &ProcessMemory::proportional},
    {"anonymous", &ProcessMemory::anonymous},
    {"file_mapped", &ProcessMemory::file_mapped},
    {"huge", &ProcessMemory::huge},
    {"swapped", &ProcessMemory::swapped},
    {"peak", &ProcessMemory::peak},
}};

[[noreturn]] void bad_field(std::string_view file, std::string_view field, std::string found) {
  throw Error(ErrorKind::malformed, {.where = fmt::format("{}, {}", file, field),
                                     .found = std::move(found),
                                     .expected = "a line \"Field: <number> kB\""});
}

/// The bytes that the line "field: <number> kB" of `text` says.
std::size_t field_bytes(std::string_view text, std::string_view field, std::string_view file) {
  std::size_t at = 0;
  while (!text.substr(at).starts_with(field) || !text.substr(at + field.size()).starts_with(':')) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) bad_field(file, field, "no such line");
    ++at;
  }
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  const std::size_t digits = line.find_first_not_of(" \t", field.size() + 1);
  std::size_t kibibytes = 0;
  const char* begin = line.data() + (digits == std::string_view::npos ? line.size() : digits);
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), kibibytes);
  const bool unit = std::string_view(end, static_cast<std::size_t>(line.data() + line.size() - end)) == " kB";
  if (error != std::errc{} || !unit || kibibytes > std::numeric_limits<std::size_t>::max() / 1024) {
    bad_field(file, field, fmt::format("\"{}\"", line));
  }
  return kibibytes * 1024;
}

[[noreturn]] void no_rollup() {
  throw Error(ErrorKind::unsupported, {.where = kRollup,
                                       .found = "this system does not have it",
                                       .expected = "Linux 4.14 or later with /proc mounted"});
}

}  // namespace

ProcessMemory parse_process_memory(std::string_view smaps_rollup, std::string_view status) {
  const auto rollup = [&](std::string_view field) { return field_bytes(smaps_rollup, field, kRollup); };
  ProcessMemory memory;
  memory.resident = rollup("Rss");
  memory.proportional = rollup("Pss");
  memory.anonymous = rollup("Anonymous");
  if (memory.anonymous > memory.resident) bad_field(kRollup, "Anonymous", "more than Rss");
  memory.file_mapped = memory.resident - memory.anonymous;
  memory.huge = rollup("AnonHugePages");
  memory.swapped = rollup("Swap");
  memory.peak = field_bytes(status, "VmHWM", kStatus);
  return memory;
}

ProcessMemory process_memory() {
  if (::access(kRollup, R_OK) != 0) no_rollup();
  return parse_process_memory(read_text_file(kRollup, kMostValue), read_text_file(kStatus, kMostValue));
}

nlohmann::ordered_json to_json(const ProcessMemory& memory) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, member] : kFields) json[name] = memory.*member;
  return json;
}

ProcessMemory read_process_memory(const nlohmann::ordered_json& json, const std::string& origin) {
  ProcessMemory memory;
  for (const auto& [name, member] : kFields) {
    if (!json.is_object() || !json.contains(name) || !json[name].is_number_unsigned()) {
      throw Error(ErrorKind::malformed, {.where = fmt::format("{}, {}", origin, name),
                                         .found = "no number of bytes",
                                         .expected = "a whole number, 0 or more"});
    }
    memory.*member = json[name].get<std::size_t>();
  }
  return memory;
}

HeldBytes::HeldBytes() : file_(::open(kRollup, O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) no_rollup();
}

HeldBytes::~HeldBytes() {
  ::close(file_);
}

std::size_t HeldBytes::operator()() const {
  std::array<char, 8192> text;
  // The kernel makes the text anew for a read at 0.
  const ssize_t count = ::pread(file_, text.data(), text.size(), 0);
  if (count <= 0) throw Error(ErrorKind::io, {.where = kRollup, .found = "cannot be read"});
  const std::string_view rollup(text.data(), static_cast<std::size_t>(count));
  return field_bytes(rollup, "Anonymous", kRollup) + field_bytes(rollup, "Swap", kRollup);
}

}  // namespace assay::lab
