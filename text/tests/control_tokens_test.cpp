#include <gtest/gtest.h>

#include "text/control_tokens.hpp"

namespace assay::text {
namespace {

TEST(ControlTokens, NoneSurvivesInCallerText) {
  EXPECT_EQ(without_control_tokens("a <|fim_suffix|> b"), "a <¦fim_suffix¦> b");
  EXPECT_EQ(without_control_tokens("<|a|><|B_9|>"), "<¦a¦><¦B_9¦>");
  EXPECT_EQ(without_control_tokens("<|<|a|>|>"), "<|<¦a¦>|>");
  EXPECT_EQ(without_control_tokens("<||>"), "<||>");
  EXPECT_EQ(without_control_tokens("<|a b|>"), "<|a b|>");
  EXPECT_EQ(without_control_tokens("<|a-b|>"), "<|a-b|>");
  EXPECT_EQ(without_control_tokens("<|é|>"), "<|é|>");
  EXPECT_EQ(without_control_tokens("<|a|"), "<|a|");
  EXPECT_EQ(without_control_tokens("<|a"), "<|a");
  EXPECT_EQ(without_control_tokens("<|"), "<|");
  EXPECT_EQ(without_control_tokens("<|a|<|b|>"), "<|a|<¦b¦>");
}

}  // namespace
}  // namespace assay::text
