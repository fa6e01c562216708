#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace assay::decision {

/// Runs `action` and expects an Error of that kind whose text has every given part.
template <class Action>
void expect_error(ErrorKind kind, std::initializer_list<std::string> parts, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "no error where one was due";
}

}  // namespace assay::decision
