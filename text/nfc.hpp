#pragma once

#include <string>
#include <string_view>

namespace assay::text {

/// Unicode normalization form C (UAX 15) of text that is known to be UTF-8, by the data of Unicode 9.0: code
/// points assigned since then neither reorder nor compose. That is what Hugging Face's tokenizers do (their
/// crate unicode-normalization-alignments 0.1.12), so it is what models have read in training.
/// Returns `text` itself where no code point can change, else a view of `buffer`.
std::string_view to_nfc(std::string_view text, std::string& buffer);

}  // namespace assay::text
