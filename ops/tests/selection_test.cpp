#include "ops/selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/cpu_features.hpp"

namespace assay::ops {
namespace {

using testing::HasSubstr;

Error selection_error(Precision precision, const FormOverrides& overrides) {
  try {
    select_forms(precision, overrides);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorKind::internal, {}};
}

const FormListing* find_listing(const std::vector<FormListing>& listings, std::string_view op,
                                std::string_view name) {
  const auto found = std::ranges::find_if(
      listings, [&](const FormListing& listing) { return listing.op == op && listing.info.name == name; });
  return found == listings.end() ? nullptr : &*found;
}

TEST(Selection, EveryOpHasAFormThatRunsHereAtBothPrecisions) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Selection selection = select_forms(precision);
    ASSERT_NE(selection.matmul, nullptr);
    EXPECT_EQ(selection.matmul->info.precision, precision);
    EXPECT_TRUE(device::cpu_supports(selection.matmul->info.needs));
    EXPECT_NE(selection.gated_delta_rule, nullptr);
    EXPECT_NE(selection.causal_conv1d, nullptr);
    EXPECT_NE(selection.attention, nullptr);
    EXPECT_NE(selection.rms_norm, nullptr);
    EXPECT_NE(selection.rope, nullptr);
    EXPECT_NE(selection.swiglu, nullptr);
    EXPECT_NE(selection.embed, nullptr);
    EXPECT_NE(selection.snake, nullptr);
    ASSERT_NE(selection.conv1d, nullptr);
    EXPECT_EQ(selection.conv1d->info.precision, precision);
    ASSERT_NE(selection.conv_transpose1d, nullptr);
    EXPECT_EQ(selection.conv_transpose1d->info.precision, precision);
  }
}

TEST(Selection, EveryOpListsAReferenceThatNeedsNothing) {
  const auto listings = list_forms();
  for (const char* op : {"matmul", "gated_delta_rule", "causal_conv1d", "attention", "rms_norm", "rope",
                         "swiglu", "embed", "conv1d", "conv_transpose1d", "snake"}) {
    const FormListing* reference = find_listing(listings, op, "reference");
    ASSERT_NE(reference, nullptr) << op;
    EXPECT_EQ(reference->info.needs, 0u) << op;
    EXPECT_EQ(reference->info.precision, Precision::fp32) << op;
    EXPECT_TRUE(reference->supported) << op;
  }
}

TEST(Selection, FormNamesAreUniqueWithinAnOpAndDescribed) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const FormListing& listing : list_forms()) {
    EXPECT_TRUE(names.emplace(listing.op, listing.info.name).second)
        << listing.op << " " << listing.info.name;
    EXPECT_FALSE(listing.info.summary.empty()) << listing.op << " " << listing.info.name;
    EXPECT_FALSE(listing.info.layout.empty()) << listing.op << " " << listing.info.name;
    EXPECT_FALSE(listing.why.empty()) << listing.op << " " << listing.info.name;
  }
}

TEST(Selection, TheListingMarksExactlyOneFormOfEachOpForEachPrecision) {
  std::map<std::string_view, std::pair<int, int>> selected;
  for (const FormListing& listing : list_forms()) {
    selected[listing.op].first += listing.selected_fp32 ? 1 : 0;
    selected[listing.op].second += listing.selected_bf16 ? 1 : 0;
    if (listing.selected_fp32 || listing.selected_bf16) {
      EXPECT_TRUE(listing.supported);
    }
  }
  EXPECT_EQ(selected.size(), 11u);
  for (const auto& [op, counts] : selected) EXPECT_EQ(counts, std::make_pair(1, 1)) << op;
}

TEST(Selection, AnUnsupportedFormSaysWhatThisProcessorLacks) {
  for (const FormListing& listing : list_forms()) {
    if (listing.supported) continue;
    EXPECT_THAT(listing.why, HasSubstr("lacks"));
    EXPECT_THAT(listing.why, HasSubstr(device::cpu_model_name()));
    const Error error =
        selection_error(listing.info.precision, {{std::string(listing.op), std::string(listing.info.name)}});
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("needs"));
  }
}

TEST(Selection, AnOverrideReplacesOneOpAlone) {
  const Selection plain = select_forms(Precision::fp32);
  const Selection chosen = select_forms(Precision::fp32, {{"rms_norm", "reference"}});
  EXPECT_EQ(chosen.rms_norm->info.name, "reference");
  EXPECT_EQ(chosen.matmul, plain.matmul);
  EXPECT_EQ(chosen.swiglu, plain.swiglu);
  EXPECT_THAT(describe(chosen), HasSubstr("rms_norm=reference"));
}

TEST(Selection, EverySupportedFormCanBeChosenAtItsPrecision) {
  for (const FormListing& listing : list_forms()) {
    if (!listing.supported) continue;
    const std::string op(listing.op);
    const std::string name(listing.info.name);
    EXPECT_THAT(describe(select_forms(listing.info.precision, {{op, name}})), HasSubstr(op + "=" + name));
  }
}

TEST(Selection, AnUnknownOpIsRefusedWithTheOpsThereAre) {
  const Error error = selection_error(Precision::fp32, {{"matmull", "vector"}});
  EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("matmull"));
  EXPECT_THAT(error.what(), HasSubstr("gated_delta_rule"));
  EXPECT_THAT(error.what(), HasSubstr("embed"));
}

TEST(Selection, AnUnknownFormIsRefusedWithTheFormsThereAre) {
  for (const char* name : {"fast", "", "Reference"}) {
    const Error error = selection_error(Precision::fp32, {{"rope", name}});
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("reference"));
  }
}

TEST(Selection, AFormOfProductsAtTheOtherPrecisionIsAMismatch) {
  for (const char* op : {"matmul", "conv1d", "conv_transpose1d"}) {
    EXPECT_EQ(selection_error(Precision::bf16, {{op, "reference"}}).kind(), ErrorKind::mismatch) << op;
    EXPECT_EQ(selection_error(Precision::fp32, {{op, "vector_bf16"}}).kind(), ErrorKind::mismatch) << op;
  }
}

TEST(Selection, FormsOfOtherOpsAreFp32AtBothPrecisions) {
  EXPECT_EQ(select_forms(Precision::bf16, {{"attention", "reference"}}).attention->info.name, "reference");
}

TEST(Selection, ADescriptionNamesEveryOp) {
  const std::string text = describe(select_forms(Precision::fp32));
  EXPECT_EQ(std::ranges::count(text, '='), 11);
  EXPECT_EQ(std::ranges::count(text, ' '), 10);
  EXPECT_THAT(describe(Selection{}), HasSubstr("matmul=none"));
}

}  // namespace
}  // namespace assay::ops
