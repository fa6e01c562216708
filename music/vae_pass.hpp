#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "music/vae.hpp"
#include "music/vae_layers.hpp"

/// What runs of the encoder and of the decoder share.
namespace assay::music {

/// Rows of activations, one after the other without gaps.
template <class T>
struct DenseRows {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t channels = 0;

  ops::Rows<T> all() const { return {data, channels}; }
  operator DenseRows<const T>() const { return {data, rows, channels}; }  // NOLINT: as a pointer converts
};
using Activations = DenseRows<float>;
using Inputs = DenseRows<const float>;

/// Two equal buffers in turn: where a layer's input is in one, its output goes to the other.
class TwoBuffers {
 public:
  TwoBuffers(device::Arena& arena, std::size_t floats)
      : buffers_{arena.allocate<float>(floats), arena.allocate<float>(floats)} {}
  float* other_than(const float* data) const {
    return data == buffers_[0].data() ? buffers_[1].data() : buffers_[0].data();
  }

 private:
  std::span<float> buffers_[2];
};

/// The stop and the progress of a whole run, over its windows; work is counted in multiply-adds.
class Course {
 public:
  Course(const VaeOptions& options, double work) : options_(options), work_(work) {}

  void check_stop(const char* where) const {
    if (!options_.stop.stop_requested()) return;
    throw Error(ErrorKind::cancelled, {.where = where, .found = "stopped on request"});
  }
  void add(double work) {
    done_ += work;
    if (options_.progress) options_.progress(std::min(1.0, done_ / work_));
  }

 private:
  const VaeOptions& options_;
  double work_;
  double done_ = 0;
};

inline double multiply_adds(const ConvLayer& layer, std::size_t rows) {
  const ops::ConvShape& shape = layer.weight.shape;
  return static_cast<double>(rows) * static_cast<double>(shape.out_channels) *
         static_cast<double>(shape.row_size());
}

inline double multiply_adds(const TransposedLayer& layer, std::size_t rows_of_x) {
  const ops::ConvShape& shape = layer.weight.shape;
  return static_cast<double>(rows_of_x) * static_cast<double>(shape.out_channels) *
         static_cast<double>(shape.row_size());
}

inline ops::Conv1dArgs conv_arguments(const ConvLayer& layer, std::size_t length) {
  return {.length = length,
          .w = &layer.weight,
          .stride = layer.stride,
          .dilation = layer.dilation,
          .padding = layer.padding};
}

/// Runs layers one after the other, hearing the stop before each.
class VaePass {
 public:
  VaePass(const ops::Context& context, const char* where, Course& course)
      : context_(context), where_(where), course_(course) {}

  /// y: where the rows go; fusion without the bias, which is the layer's.
  Activations conv(const ConvLayer& layer, const Inputs& x, ops::ConvFusion fusion, float* y) const {
    course_.check_stop(where_);
    ops::Conv1dArgs args = conv_arguments(layer, x.rows);
    const Activations out{y, ops::conv1d_length(args), layer.weight.shape.out_channels};
    args.x = x.all();
    args.fusion = fusion;
    args.fusion.bias = layer.bias.empty() ? nullptr : layer.bias.data();
    args.y = out.all();
    ops::conv1d(context_, args);
    course_.add(multiply_adds(layer, out.rows));
    return out;
  }

  Activations transposed(const TransposedLayer& layer, const SnakeLayer& snake, const Inputs& x,
                         float* y) const {
    course_.check_stop(where_);
    ops::ConvTranspose1dArgs args{
        .x = x.all(), .length = x.rows, .w = &layer.weight, .padding = layer.padding};
    const Activations out{y, ops::conv_transpose1d_length(args), layer.weight.shape.out_channels};
    args.fusion = {.bias = layer.bias.data(), .input = snake.channels()};
    args.y = out.all();
    ops::conv_transpose1d(context_, args);
    course_.add(multiply_adds(layer, x.rows));
    return out;
  }

  /// In place; `scratch` is as large as x.
  void unit(const ResidualUnit& unit, const Activations& x, float* scratch) const {
    const Activations hidden =
        conv(unit.conv1, x, {.input = unit.snake1.channels(), .output = unit.snake2.channels()}, scratch);
    conv(unit.conv2, hidden, {.residual = Inputs(x).all()}, x.data);
  }

 private:
  const ops::Context& context_;
  const char* where_;
  Course& course_;
};

/// Frames [begin, end) that a window keeps, of those it runs, [first, last).
struct VaeWindow {
  std::size_t begin;
  std::size_t end;
  std::size_t first;
  std::size_t last;
  std::size_t frames() const { return last - first; }
};

/// As few windows as `options` allow, as even as may be. Throws Error(invalid_argument) for windows of 0.
std::vector<VaeWindow> vae_windows(std::size_t frames, std::size_t reach, const VaeOptions& options);

/// Throws Error(invalid_argument) for a `values` that is no multiple of `width`, Error(non_finite) naming the
/// first value that is not finite.
void check_rows(std::span<const float> values, std::size_t width, const char* where, const char* what);

void check_finite_rows(std::span<const float> values, std::size_t width, std::size_t first_row,
                       const char* where, const char* what);

/// Throws Error(unsupported) for an odd stride, where a frame's samples would not begin at a multiple of it,
/// and Error(mismatch) where multiples and strides differ in number.
void check_strides(const VaeConfig& config);

}  // namespace assay::music
