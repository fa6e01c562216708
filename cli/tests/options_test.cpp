#include <gtest/gtest.h>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace assay::cli {
namespace {

TEST(Options, BytesWithAndWithoutSuffix) {
  EXPECT_EQ(parse_bytes("0", "--x"), 0u);
  EXPECT_EQ(parse_bytes("65536", "--x"), 65536u);
  EXPECT_EQ(parse_bytes("1B", "--x"), 1u);
  EXPECT_EQ(parse_bytes("3K", "--x"), 3072u);
  EXPECT_EQ(parse_bytes("512M", "--x"), std::size_t{512} << 20);
  EXPECT_EQ(parse_bytes("2GiB", "--x"), std::size_t{2} << 30);
  EXPECT_EQ(parse_bytes("1TB", "--x"), std::size_t{1} << 40);
}

TEST(Options, BytesOfAnyOtherShapeAreRefused) {
  for (const char* text :
       {"", "M", "-1", "+1", "1.5G", "512m", "1 G", "1GG", "1iB", "99999999999999999999", "16777216T"}) {
    EXPECT_THROW(parse_bytes(text, "--x"), Error) << text;
  }
}

TEST(Options, FormsAreOneAnOp) {
  const auto forms = parse_forms({"matmul=vector", "rope=reference"});
  EXPECT_EQ(forms.at("matmul"), "vector");
  EXPECT_EQ(forms.at("rope"), "reference");
  for (const char* item : {"matmul", "=vector", "matmul=", ""})
    EXPECT_THROW(parse_forms({item}), Error) << item;
  EXPECT_THROW(parse_forms({"matmul=vector", "matmul=reference"}), Error);
}

TEST(Options, PrecisionIsOneOfTwo) {
  EXPECT_EQ(parse_precision("fp32"), ops::Precision::fp32);
  EXPECT_EQ(parse_precision("bf16"), ops::Precision::bf16);
  EXPECT_THROW(parse_precision("FP32"), Error);
}

}  // namespace
}  // namespace assay::cli
