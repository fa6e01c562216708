#include "base/error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(Error, ReadsWhereFoundExpectedAdvice) {
  const Error error(
      ErrorKind::mismatch,
      {.where = "a.safetensors", .found = "shape [2, 3]", .expected = "[3, 2]", .advice = "transpose"});
  EXPECT_STREQ(error.what(), "a.safetensors: shape [2, 3]; expected [3, 2]; transpose");
  EXPECT_EQ(error.kind(), ErrorKind::mismatch);
  EXPECT_EQ(error.parts().where, "a.safetensors");
}

TEST(Error, LeavesOutPartsThatAreEmpty) {
  EXPECT_STREQ(Error(ErrorKind::io, {.where = "f", .found = "gone"}).what(), "f: gone");
  EXPECT_STREQ(Error(ErrorKind::io, {.where = "", .found = "gone"}).what(), "gone");
  EXPECT_STREQ(Error(ErrorKind::io, {.where = "f", .found = "gone", .expected = "", .advice = "look"}).what(),
               "f: gone; look");
}

TEST(Error, EveryKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::internal); ++kind) {
    EXPECT_TRUE(names.insert(to_string(static_cast<ErrorKind>(kind))).second) << kind;
  }
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Error, IsCaughtAsAStandardException) {
  EXPECT_THROW(throw Error(ErrorKind::internal, {.where = "x", .found = "y"}), std::exception);
}

}  // namespace
}  // namespace assay
