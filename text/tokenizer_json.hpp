#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.hpp"

namespace assay::text {

/// Reads a Hugging Face tokenizer.json of the Qwen kind. Throws Error(malformed) for what is not such a file
/// and Error(unsupported) naming the field that asks for anything else.
TokenizerParts read_tokenizer_json(std::string_view json, const std::string& origin,
                                   TextTemplate text_template = TextTemplate::refused);

}  // namespace assay::text
