// What a run tells the observer of its op calls.

#include "backbone/op_observer.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "backbone/backbone.hpp"
#include "backbone/tests/synthetic_source.hpp"

namespace assay::backbone {
namespace {

struct Recorder final : OpObserver {
  std::vector<OpCall> calls;
  void on_call(const OpCall& call) override { calls.push_back(call); }
};

class Observer : public testing::Test {
 protected:
  PassResult run(OpObserver* observer, std::size_t call_tokens = 1024) {
    const Segment state{.tokens = state_};
    const Segment question{.tokens = question_, .parent = 0, .readouts = {0, 2}};
    RunOptions options;
    options.call_tokens = call_tokens;
    options.observer = observer;
    return backbone_.run(std::vector{state, question}, options);
  }

  std::vector<OpCall> record(std::size_t call_tokens = 1024) {
    Recorder recorder;
    run(&recorder, call_tokens);
    return recorder.calls;
  }

  std::vector<std::int32_t> state_ = {1, 2, 3, 4, 5, 6, 7};
  std::vector<std::int32_t> question_ = {8, 9, 10};
  formats::ModelConfig config_ = small_hybrid();
  // A recurrent scan, which lets a call be as short as its caller likes.
  ops::Selection forms_ = ops::select_forms(ops::Precision::fp32, {{"gated_delta_rule", "vector"}});
  device::ThreadPool threads_{2};
  Backbone backbone_{config_, std::make_shared<SyntheticSource>(config_), forms_, threads_};
};

TEST_F(Observer, ChangesNoBitOfTheResult) {
  Recorder recorder;
  EXPECT_EQ(run(nullptr).hidden, run(&recorder).hidden);
  EXPECT_FALSE(recorder.calls.empty());
}

TEST_F(Observer, IsToldOfCallsInTheirOrderOneAfterTheOther) {
  const auto begin = OpCall::Clock::now();
  const std::vector<OpCall> calls = record();
  OpCall::Clock::time_point last = begin;
  for (const OpCall& call : calls) {
    EXPECT_GE(call.begin, last) << call.op;
    EXPECT_GE(call.end, call.begin) << call.op;
    last = call.end;
  }
  EXPECT_LE(last, OpCall::Clock::now());
  EXPECT_EQ(calls.front().op, "embed");
  EXPECT_EQ(calls.back().part, "final_norm");
}

TEST_F(Observer, NamesTheFormsOfTheSelectionAndTheLayers) {
  std::map<std::string_view, std::string_view> forms;
  std::set<std::int32_t> layers;
  for (const OpCall& call : record()) {
    forms.emplace(call.op, call.form);
    EXPECT_EQ(forms[call.op], call.form);
    layers.insert(call.layer);
    EXPECT_EQ(call.layer == -1, call.part == "embed" || call.part == "final_norm") << call.part;
  }
  EXPECT_EQ(forms["matmul"], forms_.matmul->info.name);
  EXPECT_EQ(forms["gated_delta_rule"], forms_.gated_delta_rule->info.name);
  EXPECT_EQ(forms["attention"], forms_.attention->info.name);
  EXPECT_EQ(forms["causal_conv1d"], forms_.causal_conv1d->info.name);
  EXPECT_EQ(forms.size(), 8u);
  EXPECT_EQ(layers.size(), config_.layers.size() + 1);
}

TEST_F(Observer, CountsEveryVisibleQueryKeyPairOfAttention) {
  std::size_t seen = 0;
  for (const OpCall& call : record()) {
    if (call.op != "attention") continue;
    ++seen;
    // Seven tokens that see 1 to 7 keys, then three that see the seven and 1 to 3 of their own.
    const double pairs = 28 + 3 * 7 + 6;
    EXPECT_EQ(call.operations, 4 * pairs * static_cast<double>(config_.heads * config_.head_dim));
    EXPECT_EQ(call.shape[0].size, 10u);
    EXPECT_EQ(call.shape[1].size, 17u);
  }
  EXPECT_GT(seen, 0u);
}

TEST_F(Observer, SeesTheSameOperationsHoweverThePassIsCut) {
  const auto sums = [](const std::vector<OpCall>& calls) {
    std::map<std::string_view, double> operations;
    for (const OpCall& call : calls) operations[call.op] += call.operations;
    return operations;
  };
  EXPECT_EQ(sums(record(1024)), sums(record(4)));
}

TEST_F(Observer, GivesTheShapeAndBytesOfAProduct) {
  for (const OpCall& call : record()) {
    if (call.part != "down") continue;
    EXPECT_EQ(call.shape[0].name, "m");
    EXPECT_EQ(call.shape[0].size, 10u);
    EXPECT_EQ(call.shape[1].size, config_.hidden_size);
    EXPECT_EQ(call.shape[2].size, config_.intermediate_size);
    EXPECT_EQ(call.operations,
              2.0 * 10 * static_cast<double>(config_.hidden_size * config_.intermediate_size));
    // It adds to the residual stream, which it therefore reads too.
    EXPECT_EQ(call.data_bytes,
              4.0 * 10 * static_cast<double>(config_.intermediate_size + 2 * config_.hidden_size));
    EXPECT_GE(call.weight_bytes, 4.0 * static_cast<double>(config_.hidden_size * config_.intermediate_size));
  }
}

TEST_F(Observer, OpTimesSumByOp) {
  OpTimes times;
  run(&times);
  const std::vector<OpCall> calls = record();
  std::size_t total = 0;
  for (const OpTimes::Entry& entry : times.entries) {
    EXPECT_GT(entry.seconds, 0) << entry.op;
    total += entry.calls;
  }
  EXPECT_EQ(total, calls.size());
  EXPECT_EQ(times.entries.size(), 8u);
}

}  // namespace
}  // namespace assay::backbone
