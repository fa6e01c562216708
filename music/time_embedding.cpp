#include "music/time_embedding.hpp"

#include <cmath>

#include "ops/scalar_math.hpp"

namespace assay::music {
namespace {

constexpr std::size_t kFrequencies = 128;
constexpr std::size_t kModulationRows = 6;

/// cos and sin of 1000·t · 10000^(−i / 128), in fp32 as the authors compute them.
std::vector<float> sinusoid(float t) {
  const float scaled = t * 1000.0f;
  const float rate = static_cast<float>(-std::log(10000.0));
  std::vector<float> values(2 * kFrequencies);
  for (std::size_t i = 0; i < kFrequencies; ++i) {
    const float exponent = rate * static_cast<float>(i) / static_cast<float>(kFrequencies);
    const float angle = scaled * std::exp(exponent);
    values[i] = std::cos(angle);
    values[kFrequencies + i] = std::sin(angle);
  }
  return values;
}

void silu_in_place(std::vector<float>& values) {
  for (float& value : values) value = ops::silu(value);
}

std::vector<float> run_row(const ops::Context& context, const Linear& linear, const std::vector<float>& x) {
  std::vector<float> y(linear.w.n);
  run_linear(context, linear, {x.data(), x.size()}, 1, {y.data(), y.size()});
  return y;
}

}  // namespace

TimeEmbedding::TimeEmbedding(const WeightLoader& loader, std::size_t hidden_size, const std::string& prefix)
    : first_(loader.linear(prefix + "linear_1", hidden_size, 2 * kFrequencies)),
      second_(loader.linear(prefix + "linear_2", hidden_size, hidden_size)),
      projection_(loader.linear(prefix + "time_proj", kModulationRows * hidden_size, hidden_size)) {}

TimeModulation TimeEmbedding::at(const ops::Context& context, float t) const {
  std::vector<float> inner = run_row(context, first_, sinusoid(t));
  silu_in_place(inner);
  TimeModulation result;
  result.embedding = run_row(context, second_, inner);
  std::vector<float> activated = result.embedding;
  silu_in_place(activated);
  result.rows = run_row(context, projection_, activated);
  return result;
}

std::size_t TimeEmbedding::weight_bytes() const {
  return first_.w.data.bytes() + second_.w.data.bytes() + projection_.w.data.bytes();
}

}  // namespace assay::music
