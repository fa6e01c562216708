#pragma once

#include <utility>

#include "base/error.hpp"

namespace assay {

/// Memory that the system did not give, of kind io: says nothing about the file or request that wanted it.
/// Small blocks, of which there are too many places to ask, are std::bad_alloc as ever.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(Parts parts) : Error(ErrorKind::io, std::move(parts)) {}
};

}  // namespace assay
