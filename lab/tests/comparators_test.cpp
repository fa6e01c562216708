#include "lab/gate/comparators.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/tests/expect_error.hpp"

namespace assay::lab {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Answer floats(std::vector<float> values, double rate = 0) {
  Answer answer;
  const std::size_t size = values.size();
  answer.arrays.push_back({.name = "y", .shape = {size}, .values = std::move(values), .sample_rate = rate});
  return answer;
}

Verdict compare(const Bar& bar, const Answer& expected, const Answer& found) {
  const auto comparator = make_comparator(bar);
  comparator->add("case", expected, found);
  return comparator->verdict();
}

Bar read(const std::string& comparator, const std::string& thresholds) {
  return read_bar(comparator, parse_json_text(thresholds, "gate.json").root, "gate.json");
}

TEST(BitIdentity, FindsTheFirstWordThatDiffers) {
  const Verdict verdict = compare(BitIdentityBar{}, floats({1, 0.0f, 3}), floats({1, -0.0f, 4}));
  EXPECT_THAT(verdict.failures, Contains(HasSubstr("case.y[1]: 0x80000000")));
  EXPECT_THAT(verdict.failures, Contains(HasSubstr("2 of 3 words differ")));
  EXPECT_EQ(verdict.measures["different"], 2);
}

TEST(BitIdentity, PassesTheSameWordsAndNaNsByTheirBits) {
  EXPECT_TRUE(compare(BitIdentityBar{}, floats({1, kNan}), floats({1, kNan})).pass());
  EXPECT_FALSE(compare(BitIdentityBar{}, floats({kNan}), floats({-kNan})).pass());
}

TEST(BitIdentity, AnotherTypeIsNotTheSameWords) {
  Answer doubles = floats({});
  doubles.arrays[0] = {.name = "y", .shape = {1}, .values = std::vector<double>{1}};
  EXPECT_THAT(compare(BitIdentityBar{}, floats({1}), doubles).failures, Contains(HasSubstr("another type")));
}

TEST(Numeric, EveryThresholdCanFailByItself) {
  const Answer expected = floats({1, 2, 3}), found = floats({1, 2, 3.5f});
  EXPECT_THAT(compare(NumericBar{.nrmse = 0.1}, expected, found).failures, Contains(HasSubstr("nrmse")));
  EXPECT_THAT(compare(NumericBar{.snr_db = 30}, expected, found).failures, Contains(HasSubstr("snr_db")));
  EXPECT_THAT(compare(NumericBar{.pearson = 0.999}, expected, found).failures,
              Contains(HasSubstr("pearson")));
  EXPECT_THAT(compare(NumericBar{.max_abs = 0.4}, expected, found).failures, Contains(HasSubstr("max_abs")));
  EXPECT_TRUE(compare(NumericBar{.nrmse = 0.2, .snr_db = 15, .pearson = 0.9, .max_abs = 0.5}, expected, found)
                  .pass());
}

TEST(Numeric, ACollapseAndAValueThatIsNotFiniteFailWhateverTheThresholds) {
  const NumericBar wide{.max_abs = 1e30};
  EXPECT_THAT(compare(wide, floats({1, 2}), floats({0, 2})).failures, Contains(HasSubstr("collapsed")));
  EXPECT_THAT(compare(wide, floats({1, 2}), floats({kNan, 2})).failures, Contains(HasSubstr("not finite")));
  EXPECT_TRUE(compare(NumericBar{.max_abs = 1e30, .collapsed = 1}, floats({1, 2}), floats({0, 2})).pass());
}

TEST(Numeric, AnUndefinedCorrelationMeetsNoBar) {
  EXPECT_FALSE(compare(NumericBar{.pearson = 0}, floats({1, 1}), floats({1, 2})).pass());
  EXPECT_TRUE(compare(NumericBar{.pearson = 1}, floats({1, 1}), floats({1, 1})).pass());
}

TEST(Numeric, NothingComparedIsAFailure) {
  EXPECT_THAT(make_comparator(NumericBar{.nrmse = 1})->verdict().failures, Contains("no values compared"));
  EXPECT_THAT(make_comparator(BitIdentityBar{})->verdict().failures, Contains("no values compared"));
  EXPECT_THAT(make_comparator(DecisionBar{})->verdict().failures, Contains("no rows"));
  EXPECT_THAT(compare(NumericBar{.nrmse = 1}, floats({}), floats({})).failures,
              Contains("no values compared"));
}

TEST(Numeric, AMissingArrayAndAnotherShapeAreFailures) {
  EXPECT_THAT(compare(NumericBar{.nrmse = 1}, floats({1, 2}), Answer{}).failures,
              Contains(HasSubstr("0 arrays")));
  EXPECT_THAT(compare(NumericBar{.nrmse = 1}, floats({1, 2}), floats({1})).failures,
              Contains(HasSubstr("[1]")));
}

TEST(Numeric, TheMeasuresAreFiniteJson) {
  const Verdict verdict = compare(NumericBar{.nrmse = 1}, floats({0, 0}), floats({0, 1}));
  EXPECT_EQ(verdict.measures["nrmse"], "infinity");
  EXPECT_TRUE(verdict.measures["pearson"].is_null());
  EXPECT_EQ(verdict.measures["nrmse_in"], "case.y");
}

TEST(Audio, JudgesTheWorstSecond) {
  std::vector<float> x(3000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.5f * std::sin(0.3f * static_cast<float>(i));
  std::vector<float> y = x;
  y[2500] += 0.3f;
  const Answer expected = floats(x, 1000);
  EXPECT_TRUE(compare(AudioBar{.whole = {.nrmse = 0.02}}, expected, floats(y, 1000)).pass());
  const Verdict verdict = compare(AudioBar{.whole = {}, .nrmse_per_second = 0.02}, expected, floats(y, 1000));
  EXPECT_THAT(verdict.failures, Contains(HasSubstr("case.y, second 2")));
  EXPECT_EQ(verdict.measures["arrays_by_name"]["case.y"]["nrmse_per_second"].size(), 3u);
}

TEST(Audio, NeedsARateAndTheSameOne) {
  EXPECT_FALSE(compare(AudioBar{.whole = {}, .rms_difference = 1}, floats({1, 2}), floats({1, 2})).pass());
  EXPECT_FALSE(
      compare(AudioBar{.whole = {}, .rms_difference = 1}, floats({1, 2}, 48000), floats({1, 2}, 44100))
          .pass());
}

TEST(Audio, ArraysWithoutARateAreNumbersBesideASound) {
  Answer expected = floats({1, 2}, 1000), found = floats({1, 2}, 1000);
  expected.arrays.push_back({.name = "latents", .shape = {2}, .values = std::vector<float>{3, 4}});
  found.arrays.push_back({.name = "latents", .shape = {2}, .values = std::vector<float>{3, 4}});
  EXPECT_TRUE(compare(AudioBar{.whole = {.nrmse = 0.02}}, expected, found).pass());
  found.arrays[1].values = std::vector<float>{3, 5};
  EXPECT_THAT(compare(AudioBar{.whole = {.nrmse = 0.02}}, expected, found).failures,
              Contains(HasSubstr("case.latents")));
}

TEST(Thresholds, AreReadStrictly) {
  const auto bad = [](const std::string& part, const std::string& comparator, const std::string& thresholds) {
    expect_error(ErrorKind::malformed, part, [&] { read(comparator, thresholds); });
  };
  bad("no field 'max_abs_dp'", "decisions", R"({"near_tie_margin": 0.02, "mean_of_row_mean_abs_dp": 1})");
  bad("a threshold of at least 0", "numeric", R"({"nrmse": -1})");
  bad("from 0 to 1", "numeric", R"({"pearson": 1.5})");
  bad("nrmse", "numeric", R"({"nrmse": null})");
  bad("unknown field 'nrsme'", "numeric", R"({"nrsme": 1, "max_abs": 1})");
  bad("no threshold that a run could miss", "numeric", "{}");
  bad("no threshold that a run could miss", "audio", R"({"collapsed": 3})");
  bad("unknown field", "bit_identity", R"({"max_abs": 0})");
  bad("expected one of decisions", "cosine", "{}");
  expect_error(ErrorKind::malformed, "no field 'thresholds'",
               [] { read_bar("numeric", std::nullopt, "gate.json"); });
  EXPECT_EQ(std::get<AudioBar>(read("audio", R"({"log_spectral_db": 1.5})")).log_spectral_db, 1.5);
}

TEST(Thresholds, ComeBackAsTheyWereRead) {
  for (const auto& [comparator, text] :
       {std::pair{"decisions", R"({"near_tie_margin":0.02,"max_abs_dp":0.5,"mean_of_row_mean_abs_dp":0.25})"},
        {"numeric", R"({"nrmse":0.5,"snr_db":20.0,"collapsed":0})"}}) {
    EXPECT_EQ(to_json(read(comparator, text)).dump(), text);
  }
}

}  // namespace
}  // namespace assay::lab
