#include "backbone/backbone.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "backbone/call_plan.hpp"
#include "backbone/layer_runner.hpp"
#include "backbone/weights.hpp"
#include "base/error.hpp"

namespace assay::backbone {

using formats::ModelConfig;

struct Backbone::Impl {
  ModelConfig config;
  FormTable forms;
  device::ThreadPool& threads;
  device::Arena arena;
  BackboneWeights weights;
};

namespace {

/// Everything of a pass that outlives a call.
struct Pass {
  std::span<const Segment> segments;
  std::vector<Call> calls;
  std::vector<LiveSegment> live;
  std::vector<std::int32_t> parents;
  PassResult result;
};

[[noreturn]] void bad_segment(std::size_t index, std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument, {.where = "segment " + std::to_string(index),
                                            .found = std::move(found),
                                            .expected = std::move(expected)});
}

void check_growing(std::span<const Segment> segments, std::size_t index, std::size_t alignment) {
  const Segment& segment = segments[index];
  const SegmentState& state = *segment.growing;
  if (segment.parent >= 0 || segment.parent_state != nullptr) {
    bad_segment(index, "a growing state and a parent", "the growing state alone, which has its parent");
  }
  if (segment.tokens.size() > state.capacity() - state.tokens()) {
    bad_segment(index, std::to_string(segment.tokens.size()) + " tokens",
                "at most the " + std::to_string(state.capacity() - state.tokens()) +
                    " that its growing state has room for");
  }
  if (state.tokens() % alignment != 0) {
    bad_segment(index, "a growing state of " + std::to_string(state.tokens()) + " tokens",
                "a multiple of " + std::to_string(alignment) + ", the selected scan's chunk");
  }
  for (std::size_t other = 0; other < index; ++other) {
    if (segments[other].growing == segment.growing) {
      bad_segment(index, "the growing state of segment " + std::to_string(other), "one of its own");
    }
  }
}

void check_segment(std::span<const Segment> segments, std::size_t index, std::size_t alignment) {
  const Segment& segment = segments[index];
  if (segment.parent >= static_cast<std::int32_t>(index)) {
    bad_segment(index, "parent " + std::to_string(segment.parent), "an earlier segment");
  }
  if (segment.parent >= 0 && segment.parent_state != nullptr) {
    bad_segment(index, "two parents", "a segment of this pass or a state, not both");
  }
  if (segment.parent_state != nullptr && segment.parent_state->tokens() != segment.parent_state->capacity()) {
    bad_segment(index, "a parent state that has not been run to its end", "a whole one");
  }
  if (segment.growing != nullptr) check_growing(segments, index, alignment);
  for (const std::size_t readout : segment.readouts) {
    if (readout >= segment.tokens.size()) {
      bad_segment(index, "a readout at token " + std::to_string(readout),
                  "one of its " + std::to_string(segment.tokens.size()) + " tokens");
    }
  }
}

std::vector<bool> segments_that_need_states(const Pass& pass) {
  std::vector<bool> needed(pass.segments.size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (pass.segments[i].keep_state || pass.segments[i].growing != nullptr) needed[i] = true;
    if (pass.segments[i].parent >= 0) needed[static_cast<std::size_t>(pass.segments[i].parent)] = true;
  }
  for (const Call& call : pass.calls) {
    for (const Piece& piece : call.pieces) {
      if (piece.count < pass.segments[piece.segment].tokens.size()) needed[piece.segment] = true;
    }
  }
  return needed;
}

void make_live(const ModelConfig& config, Pass& pass) {
  const std::vector<bool> needed = segments_that_need_states(pass);
  pass.live.resize(pass.segments.size());
  for (std::size_t i = 0; i < pass.segments.size(); ++i) {
    const Segment& segment = pass.segments[i];
    std::shared_ptr<const SegmentState> parent = segment.parent_state;
    if (segment.parent >= 0) parent = pass.live[static_cast<std::size_t>(segment.parent)].state;
    if (segment.growing != nullptr) {
      pass.live[i] = {segment.growing, segment.growing->parent().get(), segment.growing->tokens()};
      continue;
    }
    pass.live[i].parent = parent.get();
    if (needed[i]) pass.live[i].state = std::make_shared<SegmentState>(config, segment.tokens.size(), parent);
  }
}

Pass plan_pass(const ModelConfig& config, const FormTable& forms, std::span<const Segment> segments,
               const RunOptions& options) {
  Pass pass;
  pass.segments = segments;
  const bool recurrent =
      std::ranges::find(config.layers, formats::LayerType::linear_attention) != config.layers.end();
  const std::size_t continuation = recurrent ? forms.alignment() : 1;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    check_segment(segments, i, continuation);
    lengths.push_back(segments[i].tokens.size());
    pass.parents.push_back(segments[i].parent);
  }
  pass.calls = plan_calls(lengths, options.call_tokens, forms.alignment());
  make_live(config, pass);
  pass.result.hidden.resize(segments.size());
  pass.result.states.resize(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    pass.result.hidden[i].resize(segments[i].readouts.size() * config.hidden_size);
    if (segments[i].keep_state) pass.result.states[i] = pass.live[i].state;
  }
  return pass;
}

void check_finite(std::span<const float> hidden, std::size_t segment, std::size_t token) {
  const bool finite = std::all_of(hidden.begin(), hidden.end(), [](float x) { return std::isfinite(x); });
  if (finite) return;
  throw Error(
      ErrorKind::non_finite,
      {.where = "segment " + std::to_string(segment) + ", token " + std::to_string(token),
       .found = "a NaN or infinity in the hidden vector",
       .advice =
           "the weights overflow in this precision: run with --precision fp32 or check the checkpoint"});
}

void read_out(LayerRunner& runner, const Call& call, std::size_t hidden_size, Pass& pass) {
  for (const Piece& piece : call.pieces) {
    const std::vector<std::size_t>& readouts = pass.segments[piece.segment].readouts;
    for (std::size_t i = 0; i < readouts.size(); ++i) {
      if (readouts[i] < piece.offset || readouts[i] >= piece.offset + piece.count) continue;
      const std::span<float> out =
          std::span(pass.result.hidden[piece.segment]).subspan(i * hidden_size, hidden_size);
      runner.final_norm(piece.row + readouts[i] - piece.offset, out);
      check_finite(out, piece.segment, readouts[i]);
    }
  }
}

std::vector<std::int32_t> gather_tokens(const Call& call, std::span<const Segment> segments) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(call.tokens);
  for (const Piece& piece : call.pieces) {
    const auto part = segments[piece.segment].tokens.subspan(piece.offset, piece.count);
    tokens.insert(tokens.end(), part.begin(), part.end());
  }
  return tokens;
}

std::string tap_name(std::size_t index) {
  return std::string("hidden_") + (index < 10 ? "0" : "") + std::to_string(index);
}

}  // namespace

Backbone::Backbone(ModelConfig config, std::shared_ptr<const formats::TensorSource> weights,
                   const ops::Selection& selection, device::ThreadPool& threads,
                   const std::function<void(std::size_t, std::size_t)>& progress, const PartForms& parts) {
  FormTable forms(selection, config.layers.size(), parts);
  impl_.reset(new Impl{std::move(config), std::move(forms), threads, {}, {}});
  impl_->weights = load_weights(impl_->config, *weights, impl_->forms, progress);
}

Backbone::~Backbone() = default;

const ModelConfig& Backbone::config() const noexcept {
  return impl_->config;
}
const ops::Selection& Backbone::selection() const noexcept {
  return impl_->forms.own();
}
std::size_t Backbone::weight_bytes() const noexcept {
  return impl_->weights.bytes;
}

std::shared_ptr<SegmentState> Backbone::growing_state(std::size_t capacity,
                                                      std::shared_ptr<const SegmentState> parent) const {
  if (capacity == 0) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "growing state", .found = "room for no token", .expected = "for one or more"});
  }
  return std::make_shared<SegmentState>(impl_->config, capacity, std::move(parent));
}

std::size_t Backbone::state_bytes(std::size_t tokens) const {
  const ModelConfig& config = impl_->config;
  std::size_t floats = 0;
  for (const formats::LayerType type : config.layers) {
    floats += type == formats::LayerType::full_attention
                  ? 2 * tokens * config.kv_heads * config.head_dim
                  : (config.linear_conv_width - 1) * config.conv_channels() +
                        config.linear_value_heads * config.linear_key_dim * config.linear_value_dim;
  }
  return floats * sizeof(float);
}

PassResult Backbone::run(std::span<const Segment> segments, const RunOptions& options) {
  Impl& impl = *impl_;
  Pass pass = plan_pass(impl.config, impl.forms, segments, options);
  const ops::Context context{impl.threads, impl.arena};
  const std::size_t hidden_size = impl.config.hidden_size;
  for (const Call& call : pass.calls) {
    const device::Arena::Scope scope(impl.arena);
    LayerRunner runner(impl.config, impl.weights, impl.forms, context, options.observer);
    runner.begin(call, pass.live, pass.parents);
    runner.embed(gather_tokens(call, segments));
    if (options.tap) options.tap(tap_name(0), call.tokens, hidden_size, runner.hidden().data());
    for (std::size_t layer = 0; layer < impl.config.layers.size(); ++layer) {
      if (options.cancel != nullptr && options.cancel->load()) {
        throw Error(ErrorKind::cancelled,
                    {.where = "layer " + std::to_string(layer), .found = "stopped on request"});
      }
      runner.layer(layer);
      if (options.tap) options.tap(tap_name(layer + 1), call.tokens, hidden_size, runner.hidden().data());
    }
    read_out(runner, call, hidden_size, pass);
    for (const Piece& piece : call.pieces) {
      if (pass.live[piece.segment].state != nullptr) pass.live[piece.segment].state->advance(piece.count);
    }
  }
  return std::move(pass.result);
}

}  // namespace assay::backbone
