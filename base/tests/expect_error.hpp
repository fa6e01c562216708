#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace assay {

/// Expects that `body` throws an assay::Error of this kind whose message holds `part`.
template <class Body>
void expect_error(ErrorKind kind, const std::string& part, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "no error; expected " << to_string(kind) << " with \"" << part << '"';
}

}  // namespace assay
