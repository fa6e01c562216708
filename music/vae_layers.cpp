#include "music/vae_layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.hpp"

namespace assay::music {

using formats::TensorSource;

/// A weight [outer, middle, kernel] with its norm folded in: w[i] = v[i] · g[i] / ‖v[i]‖, i the outermost
/// index.
struct VaeLoader::Folded {
  const TensorSource& source;
  std::string direction;  ///< the tensor's name; the weight's own where there is no norm
  std::string magnitude;  ///< empty for none
  std::vector<std::uint64_t> shape;

  std::size_t row_size() const { return shape[1] * shape[2]; }

  void read(std::size_t first, std::size_t count, std::span<float> out) const {
    source.read_rows(direction, first, count, out);
    if (magnitude.empty()) return;
    std::vector<float> magnitudes(count);
    source.read_rows(magnitude, first, count, magnitudes);
    for (std::size_t i = 0; i < count; ++i) scale(out.subspan(i * row_size(), row_size()), magnitudes[i]);
  }

  void scale(std::span<float> row, float magnitude_of_row) const {
    double squares = 0;
    for (const float value : row) squares += static_cast<double>(value) * static_cast<double>(value);
    const float factor = magnitude_of_row / static_cast<float>(std::sqrt(squares));
    if (!std::isfinite(factor)) {
      throw Error(ErrorKind::non_finite, {.where = source.find(direction)->origin + ": " + direction,
                                          .found = "a row whose norm is 0 or too small to divide by",
                                          .advice = "the checkpoint is damaged; fetch it again"});
    }
    for (float& value : row) value *= factor;
  }

  void release() const {
    source.release(direction);
    if (!magnitude.empty()) source.release(magnitude);
  }
};

namespace {

/// to[column][row] of from[row][column], a cache line of `to` at a time.
void transpose(const float* from, std::size_t stride, std::size_t rows, std::size_t columns, float* to) {
  constexpr std::size_t kTogether = 16;
  for (std::size_t first = 0; first < rows; first += kTogether) {
    const std::size_t last = std::min(rows, first + kTogether);
    for (std::size_t column = 0; column < columns; ++column) {
      for (std::size_t row = first; row < last; ++row) to[column * rows + row] = from[row * stride + column];
    }
  }
}

/// [count, middle, kernel] to [count, kernel, middle].
void taps_before_channels(std::span<const float> from, std::size_t middle, std::size_t kernel,
                          std::span<float> to) {
  const std::size_t size = middle * kernel;
  for (std::size_t row = 0; row * size < from.size(); ++row) {
    transpose(from.data() + row * size, kernel, middle, kernel, to.data() + row * size);
  }
}

}  // namespace

VaeLoader::Folded VaeLoader::folded(const std::string& name, std::vector<std::uint64_t> shape) const {
  // torch.nn.utils.weight_norm, its successor torch.nn.utils.parametrizations.weight_norm, and neither.
  constexpr std::array<std::pair<const char*, const char*>, 2> kNames{
      {{".weight_v", ".weight_g"},
       {".parametrizations.weight.original1", ".parametrizations.weight.original0"}}};
  Folded folded{source_, name + ".weight", "", std::move(shape)};
  if (source_.find(folded.direction) == nullptr) {
    const bool newer = source_.find(name + kNames[1].first) != nullptr;
    folded.direction = name + kNames[newer ? 1 : 0].first;
    folded.magnitude = name + kNames[newer ? 1 : 0].second;
    formats::require(source_, folded.magnitude, std::array<std::uint64_t, 3>{folded.shape[0], 1, 1});
  }
  formats::require(source_, folded.direction, folded.shape);
  return folded;
}

ConvLayer VaeLoader::conv(const std::string& name, const ops::ConvShape& shape, bool biased,
                          std::size_t kept) const {
  const Folded weight = folded(name, {shape.out_channels, shape.in_channels, shape.kernel});
  ops::ConvShape packed = shape;
  if (kept != 0) packed.out_channels = kept;
  ConvLayer layer;
  std::vector<float> read;
  layer.weight =
      selection_.conv1d->pack(packed, [&](std::size_t first, std::size_t count, std::span<float> rows) {
        read.resize(rows.size());
        weight.read(first, count, read);
        taps_before_channels(read, shape.in_channels, shape.kernel, rows);
      });
  weight.release();
  layer.padding = (shape.kernel - 1) / 2;
  if (biased) {
    layer.bias =
        formats::read_tensor(source_, name + ".bias", std::array<std::uint64_t, 1>{shape.out_channels});
    layer.bias.resize(packed.out_channels);
  }
  return layer;
}

TransposedLayer VaeLoader::transposed(const std::string& name, const ops::ConvShape& shape,
                                      std::size_t stride) const {
  // Stored [in, out, kernel], and the norm is of an input channel: the whole tensor is read before an output
  // channel is known.
  const Folded weight = folded(name, {shape.in_channels, shape.out_channels, shape.kernel});
  const std::size_t row_size = weight.row_size();
  device::Buffer<float> whole(shape.in_channels * row_size);
  for (std::size_t c = 0; c < shape.in_channels; ++c)
    weight.read(c, 1, whole.span().subspan(c * row_size, row_size));
  weight.release();
  TransposedLayer layer;
  layer.weight = selection_.conv_transpose1d->pack(
      shape, stride, [&](std::size_t first, std::size_t count, std::span<float> rows) {
        transpose(whole.data() + first * shape.kernel, row_size, shape.in_channels, count * shape.kernel,
                  rows.data());
      });
  layer.padding = (stride + 1) / 2;
  layer.bias =
      formats::read_tensor(source_, name + ".bias", std::array<std::uint64_t, 1>{shape.out_channels});
  return layer;
}

SnakeLayer VaeLoader::snake(const std::string& name, std::size_t channels) const {
  const std::array<std::uint64_t, 3> shape{1, channels, 1};
  SnakeLayer layer{formats::read_tensor(source_, name + ".alpha", shape),
                   formats::read_tensor(source_, name + ".beta", shape)};
  for (std::size_t c = 0; c < channels; ++c) {
    layer.alpha[c] = std::exp(layer.alpha[c]);
    layer.inverse_beta[c] = 1.0f / (std::exp(layer.inverse_beta[c]) + 1e-9f);
    if (std::isfinite(layer.alpha[c])) continue;
    throw Error(ErrorKind::non_finite,
                {.where = source_.find(name + ".alpha")->origin + ": " + name + ".alpha",
                 .found = "a logarithm past what fp32 holds the power of",
                 .advice = "the checkpoint is damaged; fetch it again"});
  }
  return layer;
}

ResidualUnit VaeLoader::unit(const std::string& name, std::size_t channels, std::size_t dilation) const {
  ResidualUnit unit{.snake1 = snake(name + ".snake1", channels),
                    .conv1 = conv(name + ".conv1", {channels, channels, kWideKernel}, true),
                    .snake2 = snake(name + ".snake2", channels),
                    .conv2 = conv(name + ".conv2", {channels, channels, 1}, true)};
  unit.conv1.dilation = dilation;
  unit.conv1.padding *= dilation;
  return unit;
}

}  // namespace assay::music
