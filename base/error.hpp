#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace assay {

/// What kind of failure an Error reports; decides the exit status and, when served, the HTTP status.
enum class ErrorKind {
  invalid_argument,  ///< a caller's value (request field, flag) is wrong
  limit_exceeded,    ///< a stated limit is passed
  malformed,         ///< a file's bytes contradict its format
  missing,           ///< a file, tensor or field is not there
  mismatch,          ///< a tensor or field is there with another shape, type or value than required
  unsupported,       ///< well formed, but nothing here can run it
  non_finite,        ///< a NaN or infinity where a number is needed
  io,                ///< the operating system refused
  cancelled,         ///< stopped on request
  internal,          ///< a broken invariant of ours
};

std::string_view to_string(ErrorKind kind);

/// The one exception type that crosses layers. `what()`: "where: found; expected …; advice", made printable.
class Error : public std::exception {
 public:
  struct Parts {
    std::string where;          ///< file, tensor, field or flag
    std::string found;          ///< what is there
    std::string expected = {};  ///< what was needed, when it can be said
    std::string advice = {};    ///< what to do about it
  };

  Error(ErrorKind kind, Parts parts);

  ErrorKind kind() const noexcept { return kind_; }
  const Parts& parts() const noexcept { return parts_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  Parts parts_;
  std::string message_;
};

}  // namespace assay
