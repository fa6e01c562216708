// What a segment's hidden vectors may depend on: its own tokens and its ancestors', and nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backbone/backbone.hpp"
#include "backbone/tests/synthetic_source.hpp"
#include "device/memory.hpp"

namespace assay::backbone {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Case {
  const char* name;
  formats::ModelConfig (*config)();
  ops::Precision precision;
  const char* scan;  ///< a gated_delta_rule form
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

class Segments : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Backbone> make(device::ThreadPool& threads, std::uint64_t seed = 1) const {
    const formats::ModelConfig config = GetParam().config();
    return std::make_unique<Backbone>(
        config, std::make_shared<SyntheticSource>(config, seed),
        ops::select_forms(GetParam().precision, {{"gated_delta_rule", GetParam().scan}}), threads);
  }

  Tokens tokens(std::size_t count) {
    Tokens result(count);
    for (std::int32_t& token : result) token = static_cast<std::int32_t>(rng_() % 97);
    return result;
  }

  static Segment question(const Tokens& ids, std::int32_t parent) {
    return {.tokens = ids, .parent = parent, .readouts = every(ids)};
  }
  static std::vector<std::size_t> every(const Tokens& ids) {
    std::vector<std::size_t> indices(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) indices[i] = i;
    return indices;
  }

  std::mt19937 rng_{11};
  device::ThreadPool threads_{2};
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

TEST_P(Segments, AQuestionIsTheSameAloneBesideOthersAndFromAKeptState) {
  const auto backbone = make(threads_);
  const Tokens state = tokens(37);
  const std::vector<Tokens> questions{tokens(1), tokens(2), tokens(19), tokens(3), tokens(70)};

  std::vector<Segment> together{{.tokens = state, .keep_state = true}};
  for (const Tokens& q : questions) together.push_back(question(q, 0));
  const PassResult whole = backbone->run(together);
  ASSERT_NE(whole.states[0], nullptr);

  for (std::size_t i = 0; i < questions.size(); ++i) {
    const std::vector<Segment> alone{{.tokens = state}, question(questions[i], 0)};
    EXPECT_EQ(backbone->run(alone).hidden[1], whole.hidden[i + 1]) << "alone, question " << i;
    Segment from_state = question(questions[i], -1);
    from_state.parent_state = whole.states[0];
    EXPECT_EQ(backbone->run(std::vector{from_state}).hidden[0], whole.hidden[i + 1])
        << "kept state, question " << i;
  }
}

TEST_P(Segments, AStateAndItsQuestionsEqualTheSameTokensInOneSegment) {
  const auto backbone = make(threads_);
  for (const std::size_t state_length : {1u, 2u, 3u, 4u, 15u, 16u, 17u, 63u, 64u, 65u, 130u}) {
    const Tokens state = tokens(state_length);
    const Tokens ask = tokens(1 + state_length % 9);
    Tokens joined = state;
    joined.insert(joined.end(), ask.begin(), ask.end());
    Segment one{.tokens = joined};
    for (std::size_t i = 0; i < ask.size(); ++i) one.readouts.push_back(state.size() + i);
    const std::vector<Segment> two{{.tokens = state}, question(ask, 0)};
    const double bound = GetParam().precision == ops::Precision::fp32 ? 2e-4 : 0.2;
    EXPECT_LE(largest_difference(backbone->run(two).hidden[1], backbone->run(std::vector{one}).hidden[0]),
              bound)
        << "state of " << state_length;
  }
}

TEST_P(Segments, CallLengthChangesNoBit) {
  const auto backbone = make(threads_);
  const std::size_t chunk = backbone->selection().gated_delta_rule->chunk;
  const Tokens state = tokens(2 * chunk + 5);
  const Tokens first = tokens(chunk + 1);
  const Tokens second = tokens(6);
  const std::vector<Segment> segments{{.tokens = state, .keep_state = true, .readouts = every(state)},
                                      question(first, 0),
                                      question(second, 0)};
  const PassResult whole = backbone->run(segments);
  for (const std::size_t length : {chunk, chunk + 1, 2 * chunk, 2 * chunk + 7, 3 * chunk}) {
    RunOptions options;
    options.call_tokens = length;
    const PassResult cut = backbone->run(segments, options);
    EXPECT_EQ(cut.hidden, whole.hidden) << "calls of " << length;
    Segment after = question(second, -1);
    after.parent_state = cut.states[0];
    EXPECT_EQ(backbone->run(std::vector{after}).hidden[0], whole.hidden[2]) << "state of calls of " << length;
  }
}

TEST_P(Segments, ThreadCountChangesNoBit) {
  const Tokens state = tokens(41);
  const Tokens ask = tokens(12);
  const std::vector<Segment> segments{{.tokens = state, .readouts = every(state)}, question(ask, 0)};
  device::ThreadPool one(1);
  device::ThreadPool three(3);
  const auto expected = make(one)->run(segments).hidden;
  EXPECT_EQ(make(threads_)->run(segments).hidden, expected);
  EXPECT_EQ(make(three)->run(segments).hidden, expected);
}

TEST_P(Segments, EarlierRequestsLeaveNoTrace) {
  const auto used = make(threads_);
  const auto fresh = make(threads_);
  for (std::size_t i = 0; i < 5; ++i) {
    const Tokens other_state = tokens(1 + 31 * i);
    const Tokens other = tokens(9);
    used->run(std::vector<Segment>{{.tokens = other_state, .keep_state = true}, question(other, 0)});
  }
  const Tokens state = tokens(20);
  const Tokens ask = tokens(7);
  const std::vector<Segment> segments{{.tokens = state}, question(ask, 0)};
  EXPECT_EQ(used->run(segments).hidden, fresh->run(segments).hidden);
}

TEST_P(Segments, UnrelatedStatesInOnePassDoNotMeet) {
  const auto backbone = make(threads_);
  const Tokens state_a = tokens(23);
  const Tokens state_b = tokens(2);
  const Tokens ask = tokens(8);
  const PassResult both = backbone->run(
      std::vector<Segment>{{.tokens = state_a}, {.tokens = state_b}, question(ask, 0), question(ask, 1)});
  const PassResult a = backbone->run(std::vector<Segment>{{.tokens = state_a}, question(ask, 0)});
  const PassResult b = backbone->run(std::vector<Segment>{{.tokens = state_b}, question(ask, 0)});
  EXPECT_EQ(both.hidden[2], a.hidden[1]);
  EXPECT_EQ(both.hidden[3], b.hidden[1]);
  EXPECT_NE(a.hidden[1], b.hidden[1]);
}

TEST_P(Segments, AKeptStateIsNotChangedByItsChildren) {
  const auto backbone = make(threads_);
  const Tokens state = tokens(30);
  const auto kept = backbone->run(std::vector<Segment>{{.tokens = state, .keep_state = true}}).states[0];
  const Tokens ask = tokens(5);
  Segment child = question(ask, -1);
  child.parent_state = kept;
  child.keep_state = true;
  const auto first = backbone->run(std::vector{child}).hidden[0];
  for (std::size_t i = 0; i < 3; ++i) {
    const Tokens other = tokens(11);
    Segment sibling = question(other, -1);
    sibling.parent_state = kept;
    sibling.keep_state = true;
    backbone->run(std::vector{sibling});
  }
  EXPECT_EQ(backbone->run(std::vector{child}).hidden[0], first);
}

TEST_P(Segments, AChainOfParentsIsTheSameInOnePassAndInSteps) {
  const auto backbone = make(threads_);
  const Tokens a = tokens(9);
  const Tokens b = tokens(2);
  const Tokens c = tokens(14);
  const PassResult whole =
      backbone->run(std::vector<Segment>{{.tokens = a}, {.tokens = b, .parent = 0}, question(c, 1)});
  const auto state_a = backbone->run(std::vector<Segment>{{.tokens = a, .keep_state = true}}).states[0];
  const auto state_b =
      backbone->run(std::vector<Segment>{{.tokens = b, .parent_state = state_a, .keep_state = true}})
          .states[0];
  EXPECT_EQ(state_b->end(), a.size() + b.size());
  Segment last = question(c, -1);
  last.parent_state = state_b;
  EXPECT_EQ(backbone->run(std::vector{last}).hidden[0], whole.hidden[2]);
}

TEST_P(Segments, TheStatesOwnBytesAreWhatTheBudgetCounts) {
  const auto backbone = make(threads_);
  const Tokens state = tokens(50);
  const auto kept = backbone->run(std::vector<Segment>{{.tokens = state, .keep_state = true}}).states[0];
  EXPECT_GE(kept->bytes(), backbone->state_bytes(state.size()));
  EXPECT_LE(kept->bytes(), backbone->state_bytes(state.size()) + 4096);
}

TEST_P(Segments, EverChangingCallLengthsDoNotGrowMemory) {
  const auto backbone = make(threads_);
  const Tokens longest = tokens(400);
  const auto run_length = [&](std::size_t length) {
    const Tokens part(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(length));
    backbone->run(std::vector<Segment>{{.tokens = part, .readouts = {length - 1}}});
  };
  for (std::size_t i = 0; i < 3; ++i) run_length(400);
  const std::size_t before = device::footprint().resident;
  for (std::size_t length = 1; length < 400; length += 3) run_length(length);
  // A leak of one call's activations a length would be tens of megabytes.
  EXPECT_LE(device::footprint().resident, before + (std::size_t{4} << 20));
}

TEST_P(Segments, MalformedPassesAreRefused) {
  const auto backbone = make(threads_);
  const Tokens ids = tokens(4);
  const Tokens bad_id{1, 97};
  const Tokens negative{-1};
  const auto rejects = [&](std::vector<Segment> segments) { EXPECT_THROW(backbone->run(segments), Error); };
  rejects({{.tokens = ids, .parent = 0}});
  rejects({{.tokens = ids, .parent = 1}, {.tokens = ids}});
  rejects({{.tokens = ids, .readouts = {4}}});
  rejects({{.tokens = {}}});
  rejects({{.tokens = bad_id}});
  rejects({{.tokens = negative}});
  const auto unfinished = std::make_shared<SegmentState>(backbone->config(), 3, nullptr);
  rejects({{.tokens = ids, .parent_state = unfinished}});
  EXPECT_TRUE(backbone->run(std::vector<Segment>{}).hidden.empty());
}

TEST_P(Segments, CancellationStopsARunAndTheNextOneIsWhole) {
  const auto backbone = make(threads_);
  const Tokens ids = tokens(25);
  const std::vector<Segment> segments{{.tokens = ids, .readouts = every(ids)}};
  const auto expected = backbone->run(segments).hidden;
  const std::atomic<bool> cancel{true};
  RunOptions options;
  options.cancel = &cancel;
  try {
    backbone->run(segments, options);
    FAIL() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_EQ(backbone->run(segments).hidden, expected);
}

TEST_P(Segments, AGrowingStateContinuesATextBitForBit) {
  const auto backbone = make(threads_);
  const std::size_t chunk = backbone->selection().gated_delta_rule->chunk;
  const Tokens prompt = tokens(2 * chunk);
  const Tokens text = tokens(5 * chunk);
  const PassResult whole =
      backbone->run(std::vector<Segment>{{.tokens = prompt, .keep_state = true}, question(text, 0)});

  for (const std::size_t step : {chunk, 2 * chunk, 5 * chunk}) {
    const auto state = backbone->growing_state(text.size(), whole.states[0]);
    std::vector<float> hidden;
    for (std::size_t first = 0; first < text.size(); first += step) {
      const Tokens next(text.begin() + static_cast<std::ptrdiff_t>(first),
                        text.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, text.size())));
      Segment segment = question(next, -1);
      segment.growing = state;
      const PassResult part = backbone->run(std::vector{segment, question(prompt, -1)});
      hidden.insert(hidden.end(), part.hidden[0].begin(), part.hidden[0].end());
    }
    EXPECT_EQ(hidden, whole.hidden[1]) << "steps of " << step;
    Segment child = question(prompt, -1);
    child.parent_state = state;
    const std::vector<Segment> fresh{{.tokens = prompt}, {.tokens = text, .parent = 0}, question(prompt, 1)};
    EXPECT_EQ(backbone->run(std::vector{child}).hidden[0], backbone->run(fresh).hidden[2])
        << "a child of a full one, steps of " << step;
  }
}

TEST_P(Segments, AGrowingStateRefusesWhatItCannotHold) {
  const auto backbone = make(threads_);
  const std::size_t chunk = backbone->selection().gated_delta_rule->chunk;
  EXPECT_THROW(backbone->growing_state(0), Error);
  const Tokens text = tokens(2 * chunk);
  const auto run = [&](Segment segment, std::shared_ptr<SegmentState> state) {
    segment.growing = std::move(state);
    return backbone->run(std::vector{segment});
  };
  EXPECT_THROW(run({.tokens = text}, backbone->growing_state(2 * chunk - 1)), Error);
  const auto full = backbone->growing_state(2 * chunk);
  run({.tokens = text}, full);
  EXPECT_EQ(full->tokens(), 2 * chunk);
  EXPECT_THROW(run({.tokens = text}, full), Error);
  EXPECT_THROW(run({.tokens = text, .parent_state = full}, backbone->growing_state(2 * chunk)), Error);
  const auto shared = backbone->growing_state(4 * chunk);
  Segment twice{.tokens = text};
  twice.growing = shared;
  EXPECT_THROW(backbone->run(std::vector{twice, twice}), Error);
  EXPECT_EQ(shared->tokens(), 0u);
  if (chunk > 1) {
    const Tokens odd = tokens(chunk + 1);
    run({.tokens = odd}, shared);
    EXPECT_THROW(run({.tokens = odd}, shared), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Segments,
    testing::Values(Case{"dense_fp32", small_dense, ops::Precision::fp32, "reference"},
                    Case{"dense_bf16", small_dense, ops::Precision::bf16, "reference"},
                    Case{"hybrid_fp32_reference", small_hybrid, ops::Precision::fp32, "reference"},
                    Case{"hybrid_fp32_vector", small_hybrid, ops::Precision::fp32, "vector"},
                    Case{"hybrid_fp32_chunk_16", small_hybrid, ops::Precision::fp32, "chunk_16"},
                    Case{"hybrid_bf16_chunk_64", small_hybrid, ops::Precision::bf16, "chunk_64"}),
    [](const auto& info) { return info.param.name; });

class BadWeights : public testing::Test {
 protected:
  /// Loads with the source spoiled; gives the error's text.
  template <class Spoil>
  std::string error_of(ErrorKind kind, const Spoil& spoil) {
    const formats::ModelConfig config = small_hybrid();
    const auto source = std::make_shared<SyntheticSource>(config);
    spoil(*source);
    try {
      const Backbone backbone(config, source, ops::select_forms(ops::Precision::fp32), threads_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "loaded";
    return {};
  }
  device::ThreadPool threads_{1};
};

TEST_F(BadWeights, EveryTensorIsMissedByName) {
  for (const std::string& name : SyntheticSource(small_hybrid()).names()) {
    EXPECT_THAT(error_of(ErrorKind::missing, [&](SyntheticSource& s) { s.remove(name); }),
                testing::HasSubstr(name));
  }
}

TEST_F(BadWeights, EveryTensorOfAnotherShapeIsNamed) {
  for (const std::string& name : SyntheticSource(small_hybrid()).names()) {
    EXPECT_THAT(error_of(ErrorKind::mismatch,
                         [&](SyntheticSource& s) {
                           s.reshape(name, {3, 5});
                         }),
                testing::HasSubstr(name));
  }
}

TEST_F(BadWeights, ANaNInAnyTensorIsNamed) {
  for (const std::string& name : SyntheticSource(small_hybrid()).names()) {
    EXPECT_THAT(error_of(ErrorKind::non_finite, [&](SyntheticSource& s) { s.spoil(name, 3); }),
                testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace assay::backbone
