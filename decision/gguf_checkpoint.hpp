#pragma once

#include <filesystem>

#include "decision/checkpoint.hpp"

namespace assay::decision {

/// Opens a decision model that llama.cpp's converter has made into one GGUF file: backbone with the adapter
/// merged, pointer head ("cls.output"), temperatures and tokenizer (ggml-org/llama.cpp, conversion/lev.py,
/// KevModel; tools/server/server-decision.cpp reads it).
///
/// Throws Error(unsupported) for a file that is no Kev decision model, for tensor types not readable yet, and
/// for temperatures that differ by the question's type or its number of options; otherwise as
/// open_checkpoint.
Checkpoint open_gguf_checkpoint(const std::filesystem::path& path);

}  // namespace assay::decision
