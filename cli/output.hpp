#pragma once

#include <string_view>

namespace assay::cli {

/// To be called before anything is opened: a standard stream that the caller closed gets a place holder on
/// which every use fails, for else the next file would take its number and the answers would go there.
void hold_standard_streams();

/// Writes to standard output and flushes. Throws Error(io) naming it; where its reader has gone away,
/// CLI::RuntimeError(2): nobody is left to be told.
void print(std::string_view text);

/// `print` of lines that hold names from files: what in them would steer a terminal is shown as \x….
void print_lines(std::string_view text);

/// To be called at the end of a run that went well: throws as `print` where anything written before has not
/// arrived, whoever wrote it.
void finish_output();

/// A line of progress to standard error, where that is a terminal: "bench: pass 2 of 3".
void show_progress(std::string_view command, std::string_view line);

}  // namespace assay::cli
