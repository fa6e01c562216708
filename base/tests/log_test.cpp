#include "base/log.hpp"

#include <gtest/gtest.h>

#include <string>

namespace assay {
namespace {

TEST(Log, AMessageIsOneLineThatSteersNoTerminal) {
  testing::internal::CaptureStderr();
  log().warn("{}", "id\x1b[31m\nquestions.a\u202e\u009b: grün");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "assay: warning: id\\x1b[31m\\x0aquestions.a\\xe2\\x80\\xae\\xc2\\x9b: grün\n");
}

}  // namespace
}  // namespace assay
