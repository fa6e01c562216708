#include "base/error.hpp"

#include <string_view>
#include <utility>

#include "base/utf8.hpp"

namespace assay {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid argument";
    case ErrorKind::limit_exceeded:
      return "limit exceeded";
    case ErrorKind::malformed:
      return "malformed";
    case ErrorKind::missing:
      return "missing";
    case ErrorKind::mismatch:
      return "mismatch";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::non_finite:
      return "non-finite";
    case ErrorKind::io:
      return "input/output";
    case ErrorKind::cancelled:
      return "cancelled";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, Parts parts) : kind_(kind), parts_(std::move(parts)) {
  message_ = parts_.where.empty() ? parts_.found : parts_.where + ": " + parts_.found;
  if (!parts_.expected.empty()) message_ += "; expected " + parts_.expected;
  if (!parts_.advice.empty()) message_ += "; " + parts_.advice;
  message_ = printable(message_);
}

}  // namespace assay
