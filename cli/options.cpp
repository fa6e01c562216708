#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace assay::cli {
namespace {

/// The power of 1024 that a suffix stands for, or −1 where it is none.
int suffix_power(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 0;
  const std::string_view letters = "KMGT";
  const auto place = letters.find(suffix.front());
  const std::string_view rest = suffix.substr(1);
  if (place == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return -1;
  return static_cast<int>(place) + 1;
}

constexpr const char* kWholeNumber = "a whole number, not negative";

/// What a value should have been, nothing where it is of its option's type. `type` is CLI11's name for it.
std::string_view expected_form(std::string_view type, std::string_view value) {
  if (value.empty()) return "a value";
  const char* const end = value.data() + value.size();
  if (type.starts_with("UINT")) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    const bool octal = value.size() > 1 && value.front() == '0';
    if (error == std::errc::result_out_of_range) return "a smaller number";
    if (error != std::errc{} || stop != end || octal) return kWholeNumber;
  } else if (type.starts_with("FLOAT")) {
    double number = 0;
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc{} || stop != end || !std::isfinite(number)) return "a number";
  }
  return {};
}

}  // namespace

void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check([type = option->get_type_name()](const std::string& value) {
      const std::string_view expected = expected_form(type, value);
      return expected.empty() ? std::string() : fmt::format("\"{}\"; expected {}", value, expected);
    });
  }
  for (CLI::App* command : app.get_subcommands({})) check_values(*command);
}

std::size_t parse_bytes(std::string_view text, std::string_view flag) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(end - text.data());
  const int power = suffix_power(text.substr(digits));
  const int shift = 10 * power;
  if (error != std::errc{} || power < 0 || value > (std::numeric_limits<std::size_t>::max() >> shift)) {
    throw Error(ErrorKind::invalid_argument, {std::string(flag), fmt::format("\"{}\"", text),
                                              "a number of bytes", "write it as 65536, 512M or 2G"});
  }
  return value << shift;
}

ops::Precision parse_precision(std::string_view text) {
  if (text == "fp32") return ops::Precision::fp32;
  if (text == "bf16") return ops::Precision::bf16;
  throw Error(ErrorKind::invalid_argument, {"--precision", fmt::format("\"{}\"", text), "fp32 or bf16"});
}

ops::FormOverrides parse_forms(const std::vector<std::string>& items) {
  ops::FormOverrides forms;
  for (const std::string& item : items) {
    const auto equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
      throw Error(ErrorKind::invalid_argument, {"--form", fmt::format("\"{}\"", item), "op=name",
                                                "`assay forms` lists the ops and their forms"});
    }
    const std::string op = item.substr(0, equals);
    if (!forms.emplace(op, item.substr(equals + 1)).second) {
      throw Error(ErrorKind::invalid_argument,
                  {"--form", fmt::format("two forms for {}", op), "one form an op", "remove one of them"});
    }
  }
  return forms;
}

}  // namespace assay::cli
