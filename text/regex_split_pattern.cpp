#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "text/split_pattern.hpp"

namespace assay::text {
namespace {

// A pattern of a file may backtrack for ever. The Qwen patterns go back over a run of white space once; these
// many steps, and some for each byte that is left, are seconds at most.
constexpr std::size_t kMatchLimit = 10'000'000;
constexpr std::size_t kMatchLimitPerByte = 4;
constexpr std::size_t kJitStackStart = std::size_t{32} << 10;
constexpr std::size_t kJitStackLimit = std::size_t{8} << 20;

template <auto free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Freed<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

template <class T>
T made(T pointer) {
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

class RegexCursor final : public SplitCursor {
 public:
  RegexCursor(const pcre2_code* code, const std::string& where)
      : code_(code),
        where_(where),
        data_(made(MatchData(pcre2_match_data_create(1, nullptr)))),
        context_(made(MatchContext(pcre2_match_context_create(nullptr)))),
        stack_(pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr)) {
    if (stack_) pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  }

  std::size_t end_of_piece(std::string_view text, std::size_t begin) override {
    const std::size_t limit = kMatchLimit + kMatchLimitPerByte * (text.size() - begin);
    pcre2_set_match_limit(context_.get(),
                          static_cast<std::uint32_t>(std::min<std::size_t>(limit, UINT32_MAX)));
    const int found = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                                  PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
    if (found == PCRE2_ERROR_NOMATCH) return text.size();
    if (found == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (found < 0) {
      throw Error(ErrorKind::limit_exceeded,
                  {.where = where_,
                   .found = fmt::format("matching stopped at byte {} of a text of {}: {}", begin, text.size(),
                                        message_of(found)),
                   .advice = "the pattern backtracks too much on this text; shorten the text"});
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_.get());
    return bounds[0] > begin ? bounds[0] : bounds[1];
  }

 private:
  const pcre2_code* code_;
  const std::string& where_;
  MatchData data_;
  MatchContext context_;
  JitStack stack_;
};

class RegexPattern final : public SplitPattern {
 public:
  RegexPattern(std::string_view pattern, std::string where) : where_(std::move(where)) {
    const std::string translated = translate_split_pattern(pattern, where_);
    int code = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), PCRE2_UTF,
                              &code, &offset, nullptr));
    constexpr int kNoMemory = 121;  // "failed to allocate heap memory" (PCRE2, src/pcre2_error.c)
    if (!code_ && code == kNoMemory) throw std::bad_alloc();
    if (!code_) {
      throw Error(ErrorKind::unsupported,
                  {.where = where_,
                   .found = fmt::format("a pattern that PCRE2 refuses: {}", message_of(code)),
                   .expected = "the split pattern of a Qwen tokenizer"});
    }
    std::uint32_t matches_empty = 0;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty != 0) {
      throw Error(
          ErrorKind::unsupported,
          {.where = where_, .found = "a pattern that matches nothing at all", .expected = "pieces of text"});
    }
    // Without just-in-time compilation (a hardened kernel, another processor) pcre2_match interprets.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  std::unique_ptr<SplitCursor> cursor() const override {
    return std::make_unique<RegexCursor>(code_.get(), where_);
  }

 private:
  std::string where_;
  Code code_;
};

}  // namespace

std::unique_ptr<const SplitPattern> make_regex_split_pattern(std::string_view pattern,
                                                             const std::string& where) {
  return std::make_unique<RegexPattern>(pattern, where);
}

}  // namespace assay::text
