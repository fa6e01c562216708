// The planner against transformers' logits and the authors' own restriction of the metadata
// (oracle/planner_oracle.py), and what must hold whatever the weights.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/tests/sanitized.hpp"
#include "formats/safetensors.hpp"
#include "music/metadata_grammar.hpp"
#include "music/planner.hpp"
#include "ops/selection.hpp"

namespace assay::music {
namespace {

using Tokens = std::vector<std::int32_t>;

std::filesystem::path planner_data(const std::string& name) {
  return std::filesystem::path(ASSAY_TEST_DATA) / name;
}

const nlohmann::json& planner_fixture() {
  static const nlohmann::json document = [] {
    std::ifstream file(planner_data("ace-tiny-planner.fixture.json"));
    return nlohmann::json::parse(file);
  }();
  return document;
}

class PlannerModel : public testing::Test {
 protected:
  static std::unique_ptr<CausalLm> load(device::ThreadPool& threads,
                                        ops::Precision precision = ops::Precision::fp32) {
    return std::make_unique<CausalLm>(planner_data("ace-tiny-planner"), ops::select_forms(precision),
                                      threads);
  }
  static PlannerPrompt prompt_of(const nlohmann::json& song) {
    return {.caption = song["caption"], .lyrics = song["lyrics"], .negative = ""};
  }
  static SongMetadata given_of(const nlohmann::json& song) {
    std::string lines;
    for (const auto& [name, value] : song["given"].items()) {
      lines += name + ": " + value.get<std::string>() + "\n";
    }
    return parse_metadata_lines(lines);
  }
  static PlannerOptions greedy() {
    return {.sampling = {.temperature = 0}, .guidance = planner_fixture()["guidance"], .caption = false};
  }

  device::ThreadPool threads_{2};
};

TEST_F(PlannerModel, AsksInTheTextsAndTokensOfTheOracle) {
  const auto model = load(threads_);
  for (const auto& song : planner_fixture()["songs"]) {
    const PlannerPrompt prompt = prompt_of(song);
    const SongMetadata metadata = parse_metadata_lines(song["metadata_lines"].get<std::string>());
    EXPECT_EQ(metadata_lines(metadata), song["metadata_lines"]);
    const std::vector<std::pair<const char*, std::string>> texts{
        {"metadata", metadata_prompt(prompt)},
        {"metadata_unguided", unguided_metadata_prompt(prompt)},
        {"codes", codes_prompt(prompt, metadata)},
        {"codes_unguided", unguided_codes_prompt(prompt)}};
    for (const auto& [name, text] : texts) {
      EXPECT_EQ(text, song["texts"][name]) << name;
      EXPECT_EQ(model->tokenizer().encode(text), song["ids"][name].get<Tokens>()) << name;
    }
  }
}

/// √(Σ(found − expected)² / Σexpected²) over every logit of a song.
double logits_nrmse(CausalLm& model, const nlohmann::json& song) {
  const auto source = formats::open_safetensors(planner_data("ace-tiny-planner.fixture.safetensors"));
  const auto forced = song["forced_tokens"].get<Tokens>();
  const std::string name = song["id"].get<std::string>() + ".logits";
  const std::vector<float> expected = formats::read_tensor(
      *source, name, std::array<std::uint64_t, 2>{forced.size() + 1, model.vocabulary()});
  CausalLm::Texts texts(model, {song["ids"]["codes"].get<Tokens>()}, forced.size() + 1);
  double error = 0;
  double power = 0;
  const auto add = [&](float found, float wanted) {
    error += std::pow(static_cast<double>(found) - static_cast<double>(wanted), 2);
    power += std::pow(static_cast<double>(wanted), 2);
  };
  for (std::size_t step = 0; step <= forced.size(); ++step) {
    const HeadPart part = step % 2 == 0 ? HeadPart::codes : HeadPart::text;
    const std::vector<float> found = texts.logits(part)[0];
    const float* row = expected.data() + step * model.vocabulary();
    if (part == HeadPart::codes) {
      for (std::size_t i = 0; i < model.codes().size(); ++i) add(found[i], row[model.codes()[i]]);
      add(found.back(), row[model.end_token()]);
    } else {
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::isfinite(found[i])) add(found[i], row[i]);
      }
    }
    if (step < forced.size()) texts.append(std::span(&forced[step], 1));
  }
  return std::sqrt(error / power);
}

TEST_F(PlannerModel, LogitsEqualTheOraclesTokenByToken) {
  const auto exact = load(threads_);
  const auto fast = load(threads_, ops::Precision::bf16);
  for (const auto& song : planner_fixture()["songs"]) {
    EXPECT_LE(logits_nrmse(*exact, song), 1e-5) << song["id"];
    EXPECT_LE(logits_nrmse(*fast, song), 0.03) << song["id"];
  }
}

TEST_F(PlannerModel, TheMostLikelyPlanIsTheAuthors) {
  const auto model = load(threads_);
  for (const auto& song : planner_fixture()["songs"]) {
    PlannerOptions options = greedy();
    const auto codes = song["codes"].get<Tokens>();
    options.duration = static_cast<double>(codes.size()) / kCodesPerSecond;
    const Plan plan = plan_song(*model, prompt_of(song), given_of(song), options);
    EXPECT_EQ(metadata_lines(plan.metadata), song["metadata_lines"]) << song["id"];
    EXPECT_EQ(plan.codes, codes) << song["id"];
  }
}

TEST_F(PlannerModel, ATextWrittenTokenByTokenHasTheBitsOfOneRunAtOnce) {
  const auto model = load(threads_);
  const auto& song = planner_fixture()["songs"][0];
  Tokens text = song["ids"]["codes"].get<Tokens>();
  const Tokens other = song["ids"]["codes_unguided"].get<Tokens>();
  CausalLm::Texts growing(*model, {text, other}, 8);
  growing.logits(HeadPart::codes);
  for (const std::int32_t token : song["forced_tokens"].get<Tokens>()) {
    growing.append(std::span(&token, 1));
    text.push_back(token);
    const auto found = growing.logits(HeadPart::codes);
    CausalLm::Texts whole(*model, {text}, 1);
    EXPECT_EQ(found[0], whole.logits(HeadPart::codes)[0]);
  }
}

TEST_F(PlannerModel, APlanFollowsFromItsSeedAndNotFromTheThreads) {
  device::ThreadPool one(1);
  const auto model = load(threads_);
  const auto alone = load(one);
  const auto& song = planner_fixture()["songs"][0];
  PlannerOptions options{.seed = 0x1234567890abcdefu, .duration = kSanitized ? 1 : 3};
  const Plan plan = plan_song(*model, prompt_of(song), {}, options);
  EXPECT_EQ(plan.codes.size(), kSanitized ? 5u : 15u);
  EXPECT_EQ(plan.seed, options.seed);
  for (CausalLm* again : {model.get(), alone.get()}) {
    const Plan same = plan_song(*again, prompt_of(song), {}, options);
    EXPECT_EQ(same.codes, plan.codes);
    EXPECT_EQ(same.metadata, plan.metadata);
  }
  options.seed ^= std::uint64_t{1} << 40;  // beyond 32 bits
  EXPECT_NE(plan_song(*model, prompt_of(song), {}, options).codes, plan.codes);
}

TEST_F(PlannerModel, EveryOptionMatters) {
  const auto model = load(threads_);
  const auto& song = planner_fixture()["songs"][0];
  const PlannerPrompt prompt = prompt_of(song);
  const PlannerOptions base{.seed = 7, .metadata = false, .duration = 4};
  const auto codes = [&](const PlannerOptions& options, const PlannerPrompt& asked,
                         const SongMetadata& given) {
    return plan_song(*model, asked, given, options).codes;
  };
  const SongMetadata given{.bpm = 90};
  const Tokens usual = codes(base, prompt, given);
  const auto changed = [&](const auto& change) {
    PlannerOptions options = base;
    change(options);
    return codes(options, prompt, given);
  };
  EXPECT_NE(changed([](auto& o) { o.guidance = 1; }), usual);
  EXPECT_NE(changed([](auto& o) { o.sampling.temperature = 1.5f; }), usual);
  EXPECT_NE(changed([](auto& o) { o.sampling.top_k = 1; }), usual);
  EXPECT_NE(changed([](auto& o) { o.sampling.top_p = 0.05f; }), usual);
  EXPECT_NE(changed([](auto& o) { o.sampling.repetition_penalty = 5; }), usual);
  EXPECT_NE(codes(base, {.caption = "other", .lyrics = prompt.lyrics, .negative = ""}, given), usual);
  EXPECT_NE(codes(base, {.caption = prompt.caption, .lyrics = "other", .negative = ""}, given), usual);
  EXPECT_NE(codes(base, {.caption = prompt.caption, .lyrics = prompt.lyrics, .negative = "noise"}, given),
            usual);
  EXPECT_NE(codes(base, prompt, {.bpm = 91}), usual);
  EXPECT_EQ(changed([](auto& o) { o.duration = 2; }), Tokens(usual.begin(), usual.begin() + 10));
  EXPECT_TRUE(changed([](auto& o) { o.codes = false; }).empty());
}

TEST_F(PlannerModel, ACaptionIsWrittenInOneOrMoreLines) {
  const auto model = load(threads_);
  for (std::uint64_t seed = 0; seed < (kSanitized ? 1 : 3); ++seed) {
    const Plan plan = plan_song(*model, prompt_of(planner_fixture()["songs"][0]), {},
                                {.guidance = 1, .seed = seed, .codes = false});
    ASSERT_TRUE(plan.metadata.caption);
    EXPECT_FALSE(plan.metadata.caption->empty());
    EXPECT_EQ(plan.metadata.caption->find_first_of("\n`"), std::string::npos);
    EXPECT_TRUE(plan.metadata.bpm && plan.metadata.duration && plan.metadata.keyscale &&
                plan.metadata.language && plan.metadata.timesignature);
  }
}

TEST_F(PlannerModel, StopsWhenAskedAndRefusesWhatItCannotWrite) {
  const auto model = load(threads_);
  const PlannerPrompt prompt = prompt_of(planner_fixture()["songs"][0]);
  const auto kind_of = [&](const SongMetadata& given, const PlannerOptions& options,
                           const PlannerProgress& progress = nullptr, const std::stop_token& stop = {}) {
    try {
      plan_song(*model, prompt, given, options, progress, stop);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  std::stop_source source;
  std::size_t written = 0;
  EXPECT_EQ(kind_of(
                {}, {.metadata = false, .duration = 600},
                [&](std::string_view stage, std::size_t done, std::size_t expected) {
                  EXPECT_EQ(stage, "codes");
                  EXPECT_EQ(expected, 3000u);
                  written = done;
                  if (done == 3) source.request_stop();
                },
                source.get_token()),
            ErrorKind::cancelled);
  EXPECT_EQ(written, 3u);
  EXPECT_EQ(kind_of({.keyscale = "H major"}, {}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of({.bpm = 20}, {}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of({.language = "klingon"}, {}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of({}, {.guidance = -1}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of({}, {.duration = 601}), ErrorKind::invalid_argument);
  EXPECT_EQ(kind_of({}, {.duration = std::nan("")}), ErrorKind::invalid_argument);
  const PlannerPrompt endless{.caption = "x", .lyrics = std::string(40000, 'a'), .negative = ""};
  EXPECT_THROW(plan_song(*model, endless, {}, {}), Error);
}

TEST_F(PlannerModel, WhateverTheModelSaysTheMetadataIsInTheGrammar) {
  const auto model = load(threads_);
  const MetadataVocabulary vocabulary(model->tokenizer(), model->codes());
  std::mt19937 rng(5);
  std::normal_distribution<float> normal(0, 3);
  for (int walk = 0; walk < (kSanitized ? 8 : 60); ++walk) {
    SongMetadata given;
    if (walk % 3 == 1) given.bpm = 30 + walk;
    if (walk % 4 == 1) given.caption = "it's: given";
    MetadataGrammar grammar(vocabulary, given, {.caption = walk % 2 == 0, .language = walk % 5 != 0});
    Tokens written;
    while (true) {
      const Tokens forced = grammar.take_forced();
      written.insert(written.end(), forced.begin(), forced.end());
      if (grammar.done()) break;
      std::vector<float> logits(model->vocabulary());
      for (float& logit : logits) logit = normal(rng);
      if (walk % 7 == 0) logits[static_cast<std::size_t>(vocabulary.newline())] = 50;
      if (!grammar.restrict(logits)) continue;
      const auto token = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
      grammar.accept(token);
      written.push_back(token);
      ASSERT_LT(written.size(), 2000u);
    }
    const std::string text = model->tokenizer().decode(written);
    ASSERT_TRUE(text.starts_with("<think>\nbpm:")) << text;
    const SongMetadata metadata = parse_metadata_lines(text.substr(8));
    EXPECT_TRUE(metadata.bpm && metadata.duration && metadata.keyscale && metadata.timesignature) << text;
    EXPECT_EQ(metadata.language.has_value(), walk % 5 != 0) << text;
    EXPECT_EQ(metadata.caption.has_value(), walk % 2 == 0 || walk % 4 == 1) << text;
    if (given.bpm) {
      EXPECT_EQ(metadata.bpm, given.bpm);
    }
    const std::vector<std::string> keys = metadata_values("keyscale");
    EXPECT_NE(std::ranges::find(keys, *metadata.keyscale), keys.end()) << text;
  }
}

TEST(CausalLmFiles, AModelThatIsNoPlannerIsRefused) {
  device::ThreadPool threads(1);
  const auto error_of = [&](const std::filesystem::path& directory) -> std::string {
    try {
      CausalLm model(directory, ops::select_forms(ops::Precision::fp32), threads);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of(planner_data("kev-tiny-hybrid/base")).find("hybrid"), std::string::npos);
  EXPECT_NE(error_of(planner_data("kev-tiny-dense/base")).find("audio_code_0"), std::string::npos);
  EXPECT_NE(error_of(planner_data("nowhere")), "");
}

}  // namespace
}  // namespace assay::music
