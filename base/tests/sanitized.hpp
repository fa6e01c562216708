#pragma once

namespace assay {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ASSAY_CLANG_SANITIZES 1
#endif
#endif

/// Whether the tests are compiled with a sanitizer. It looks for faults of memory, which a few rounds of a
/// loop over numbers show as well as many do, several times slower: such a loop may take fewer then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ASSAY_CLANG_SANITIZES)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace assay
