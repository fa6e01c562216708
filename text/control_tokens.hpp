#pragma once

#include <string>
#include <string_view>

namespace assay::text {

/// Caller text with every "<|name|>" (name of A–Z, a–z, 0–9 and _) as "<¦name¦>", so that it can form no
/// control token (jaredpalmer/kev, kev/encoding.py, `user_tokens`).
std::string without_control_tokens(std::string_view text);

}  // namespace assay::text
