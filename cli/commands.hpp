#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/output.hpp"
#include "ops/selection.hpp"

/// The program's commands, one file each. A command adds its subcommand and a callback to the application.
///
/// Answers and reports go to standard output by `print`; everything else (progress, warnings, errors) to
/// standard error. A callback that ends well returns; one whose verdict is negative (a gate's FAIL, a bad
/// line among good ones) throws `CLI::RuntimeError(1)`; one that could not do its work throws `assay::Error`,
/// which `main` prints before it exits with status 2.
namespace assay::cli {

void add_decide(CLI::App& app);
void add_compose(CLI::App& app);
void add_gate(CLI::App& app);
void add_eval(CLI::App& app);
void add_inspect(CLI::App& app);
void add_forms(CLI::App& app);
void add_bench(CLI::App& app);
void add_lab(CLI::App& app);
void add_ledger(CLI::App& app);
void add_window(CLI::App& app);

/// Subcommands of `lab`.
void add_report(CLI::App& lab);
void add_select(CLI::App& lab);

/// Gives every option of the application and its commands a check of its values' form: no value is empty, a
/// whole number is digits, a number is finite. CLI11 by itself says only that it could not convert, takes
/// "010" for 8 and passes over "".
void check_values(CLI::App& app);

/// "512M", "2G", "65536" to bytes; the suffixes K, M, G, T are powers of 1024 and may be followed by "iB" or
/// "B". Throws Error(invalid_argument) naming `flag`.
std::size_t parse_bytes(std::string_view text, std::string_view flag);

/// "fp32" or "bf16". Throws Error(invalid_argument) naming the flag.
ops::Precision parse_precision(std::string_view text);

/// "op=name" items, as `--form` takes them, possibly several. Throws Error(invalid_argument) for an item
/// of another shape or two forms for one op.
ops::FormOverrides parse_forms(const std::vector<std::string>& items);

}  // namespace assay::cli
