#include <algorithm>
#include <cmath>
#include <span>

#include "ops/gated_delta_rule/forms.hpp"
#include "ops/gated_delta_rule/gates.hpp"

namespace assay::ops::gdn {
namespace {

struct Scratch {
  std::span<float> q;
  std::span<float> k;
  std::span<float> delta;
  std::span<float> state;
};

void normalise(const float* x, float scale, std::span<float> y) {
  float squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) squares += x[i] * x[i];
  const float factor = scale / std::sqrt(squares + kNormEpsilon);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * factor;
}

/// y[j] = Σ_i state[i, j] · x[i]
void read_state(const float* state, std::span<const float> x, std::span<float> y) {
  std::fill(y.begin(), y.end(), 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += state[i * y.size() + j] * x[i];
  }
}

void step(const GatedDeltaRuleArgs& args, std::size_t token, std::size_t head, const Scratch& scratch,
          float* state) {
  const std::size_t key_head = head / (args.value_heads / args.key_heads);
  const std::size_t width = args.value_dim;
  normalise(args.q.row(token) + key_head * args.key_dim, 1.0f / std::sqrt(static_cast<float>(args.key_dim)),
            scratch.q);
  normalise(args.k.row(token) + key_head * args.key_dim, 1.0f, scratch.k);
  const Gates gate = gates(args, token, head);

  for (std::size_t i = 0; i < args.key_dim * width; ++i) state[i] *= gate.keep;
  read_state(state, scratch.k, scratch.delta);
  const float* v = args.v.row(token) + head * width;
  for (std::size_t j = 0; j < width; ++j) scratch.delta[j] = gate.write * (v[j] - scratch.delta[j]);
  for (std::size_t i = 0; i < args.key_dim; ++i) {
    for (std::size_t j = 0; j < width; ++j) state[i * width + j] += scratch.k[i] * scratch.delta[j];
  }
  read_state(state, scratch.q, {args.o.row(token) + head * width, width});
}

void run_head(const GatedDeltaRuleArgs& args, const SequenceSegment& segment, std::size_t head,
              const Scratch& scratch) {
  const std::size_t size = args.key_dim * args.value_dim;
  float* state = segment.final != nullptr ? segment.final + head * size : scratch.state.data();
  if (segment.initial != nullptr) {
    std::copy_n(segment.initial + head * size, size, state);
  } else {
    std::fill_n(state, size, 0.0f);
  }
  for (std::size_t t = 0; t < segment.length; ++t) step(args, segment.first + t, head, scratch, state);
}

}  // namespace

void run_reference(const Context& context, const GatedDeltaRuleArgs& args) {
  check_shape(args);
  const device::Arena::Scope scope(context.arena);
  const std::size_t vectors = 2 * args.key_dim + args.value_dim;
  const std::size_t each = vectors + args.key_dim * args.value_dim;
  const std::span<float> storage = context.arena.allocate<float>(each * context.threads.size());
  context.threads.parallel_for(
      args.segments.size() * args.value_heads, [&](std::size_t item, std::size_t worker) {
        const std::span<float> own = storage.subspan(worker * each, each);
        const Scratch scratch{.q = own.first(args.key_dim),
                              .k = own.subspan(args.key_dim, args.key_dim),
                              .delta = own.subspan(2 * args.key_dim, args.value_dim),
                              .state = own.subspan(vectors)};
        run_head(args, args.segments[item / args.value_heads], item % args.value_heads, scratch);
      });
}

}  // namespace assay::ops::gdn
