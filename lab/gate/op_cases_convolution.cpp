// conv1d, conv_transpose1d and the activation that is fused into them, snake.

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lab/gate/op_case_values.hpp"

namespace assay::lab {
namespace {

using ConvolutionCases = std::vector<std::unique_ptr<OpCase>>;

double exact_snake(double x, double alpha, double inverse_beta) {
  const double sine = std::sin(alpha * x);
  return x + inverse_beta * sine * sine;
}

/// Constants of a snake over some channels.
struct DrawnSnake {
  std::vector<float> alpha, inverse_beta;

  DrawnSnake(Draw& draw, std::size_t channels)
      : alpha(draw.uniform(channels, 0.2, 3)), inverse_beta(draw.uniform(channels, 0.1, 1)) {}
  ops::SnakeChannels channels() const { return {alpha.data(), inverse_beta.data()}; }
  double of(double x, std::size_t c) const { return exact_snake(x, alpha[c], inverse_beta[c]); }
};

class SnakeCase final : public OpCase {
 public:
  SnakeCase(Draw& draw, std::size_t rows, std::size_t channels, Fill fill)
      : rows_(rows), channels_(channels), fill_(fill), snake_(draw, channels) {
    x_ = draw.values(rows * channels, fill);
  }

  std::string name() const override {
    return fmt::format("rows={} channels={} {}", rows_, channels_, to_string(fill_));
  }

  Answer exact() const override {
    std::vector<double> y(x_.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = snake_.of(x_[i], i % channels_);
    return one_array({rows_, channels_}, std::move(y));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> y(x_.size());
    selection.snake->run(context, {.rows = rows_,
                                   .channels = channels_,
                                   .x = {x_.data(), channels_},
                                   .snake = snake_.channels(),
                                   .y = {y.data(), channels_}});
    return one_array({rows_, channels_}, std::move(y));
  }

 private:
  std::size_t rows_, channels_;
  Fill fill_;
  DrawnSnake snake_;
  std::vector<float> x_;
};

/// What the cases of both convolutions share. `scatter` says what row of x, tap and row of y go together.
class ConvolutionCase : public OpCase {
 public:
  ConvolutionCase(Draw& draw, const ops::ConvShape& shape, std::size_t length, std::size_t rows, Fill fill,
                  bool fused)
      : shape_(shape),
        length_(length),
        rows_(rows),
        fill_(fill),
        fused_(fused),
        input_(draw, shape.in_channels),
        output_(draw, shape.out_channels) {
    x_ = draw.values(length * shape.in_channels, fill);
    w_ = draw.values(shape.out_channels * shape.row_size(), Fill::ordinary);
    bias_ = draw.values(shape.out_channels, Fill::ordinary);
    residual_ = draw.values(rows * shape.out_channels, Fill::ordinary);
  }

  Answer exact() const override {
    std::vector<double> y(rows_ * shape_.out_channels);
    for (std::size_t t = 0; t < length_; ++t) {
      for (std::size_t j = 0; j < shape_.kernel; ++j) add_products(t, j, y);
    }
    for (std::size_t i = 0; fused_ && i < y.size(); ++i) {
      const std::size_t o = i % shape_.out_channels;
      y[i] = output_.of(y[i] + bias_[o], o) + residual_[i];
    }
    return one_array({rows_, shape_.out_channels}, std::move(y));
  }

 protected:
  /// The row of y that row t of x reaches through tap j, or one past the last for none.
  virtual std::size_t reached(std::size_t t, std::size_t j) const = 0;

  ops::ConvRows rows_of_w() const {
    return [this](std::size_t first, std::size_t count, std::span<float> rows) {
      std::memcpy(rows.data(), w_.data() + first * shape_.row_size(),
                  count * shape_.row_size() * sizeof(float));
    };
  }
  ops::ConvFusion fusion() const {
    if (!fused_) return {};
    return {.bias = bias_.data(),
            .input = input_.channels(),
            .output = output_.channels(),
            .residual = {residual_.data(), shape_.out_channels}};
  }
  std::string shape_name() const {
    return fmt::format("{}→{} k{} length={} {}{}", shape_.in_channels, shape_.out_channels, shape_.kernel,
                       length_, to_string(fill_), fused_ ? " fused" : "");
  }

  ops::ConvShape shape_;
  std::size_t length_, rows_;
  Fill fill_;
  bool fused_;
  DrawnSnake input_, output_;
  std::vector<float> x_, w_, bias_, residual_;

 private:
  void add_products(std::size_t t, std::size_t j, std::vector<double>& y) const {
    const std::size_t row = reached(t, j);
    if (row >= rows_) return;
    for (std::size_t o = 0; o < shape_.out_channels; ++o) {
      for (std::size_t c = 0; c < shape_.in_channels; ++c) {
        const double x = x_[t * shape_.in_channels + c];
        y[row * shape_.out_channels + o] +=
            (fused_ ? input_.of(x, c) : x) *
            static_cast<double>(w_[o * shape_.row_size() + j * shape_.in_channels + c]);
      }
    }
  }
};

struct Conv1dSizes {
  ops::ConvShape shape;
  std::size_t length, stride, dilation, padding;

  ops::Conv1dArgs arguments(const ops::Conv1dWeight& weight) const {
    return {.length = length, .w = &weight, .stride = stride, .dilation = dilation, .padding = padding};
  }
  std::size_t rows() const {
    ops::Conv1dWeight weight;
    weight.shape = shape;
    return ops::conv1d_length(arguments(weight));
  }
};

class Conv1dCase final : public ConvolutionCase {
 public:
  Conv1dCase(Draw& draw, const Conv1dSizes& sizes, Fill fill, bool fused)
      : ConvolutionCase(draw, sizes.shape, sizes.length, sizes.rows(), fill, fused), sizes_(sizes) {}

  std::string name() const override {
    return fmt::format("stride={} dilation={} padding={} {}", sizes_.stride, sizes_.dilation, sizes_.padding,
                       shape_name());
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    const ops::Conv1dWeight weight = selection.conv1d->pack(shape_, rows_of_w());
    std::vector<float> y(rows_ * shape_.out_channels);
    ops::Conv1dArgs args = sizes_.arguments(weight);
    args.x = {x_.data(), shape_.in_channels};
    args.fusion = fusion();
    args.y = {y.data(), shape_.out_channels};
    ops::conv1d(context, args);
    return one_array({rows_, shape_.out_channels}, std::move(y));
  }

 private:
  std::size_t reached(std::size_t t, std::size_t j) const override {
    const std::size_t place = t + sizes_.padding;
    const std::size_t offset = j * sizes_.dilation;
    if (place < offset || (place - offset) % sizes_.stride != 0) return rows_;
    return (place - offset) / sizes_.stride;
  }

  Conv1dSizes sizes_;
};

struct TransposeSizes {
  ops::ConvShape shape;
  std::size_t length, stride, padding;

  std::size_t rows() const {
    ops::ConvTranspose1dWeight weight;
    weight.shape = shape;
    weight.stride = stride;
    return ops::conv_transpose1d_length({.length = length, .w = &weight, .padding = padding});
  }
};

class ConvTranspose1dCase final : public ConvolutionCase {
 public:
  ConvTranspose1dCase(Draw& draw, const TransposeSizes& sizes, Fill fill, bool fused)
      : ConvolutionCase(draw, sizes.shape, sizes.length, sizes.rows(), fill, fused), sizes_(sizes) {}

  std::string name() const override {
    return fmt::format("stride={} padding={} {}", sizes_.stride, sizes_.padding, shape_name());
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    const ops::ConvTranspose1dWeight weight =
        selection.conv_transpose1d->pack(shape_, sizes_.stride, rows_of_w());
    std::vector<float> y(rows_ * shape_.out_channels);
    ops::conv_transpose1d(context, {.x = {x_.data(), shape_.in_channels},
                                    .length = length_,
                                    .w = &weight,
                                    .padding = sizes_.padding,
                                    .fusion = fusion(),
                                    .y = {y.data(), shape_.out_channels}});
    return one_array({rows_, shape_.out_channels}, std::move(y));
  }

 private:
  std::size_t reached(std::size_t t, std::size_t j) const override {
    const std::size_t place = t * sizes_.stride + j;
    return place < sizes_.padding ? rows_ : place - sizes_.padding;
  }

  TransposeSizes sizes_;
};

}  // namespace

ConvolutionCases snake_cases(Draw draw) {
  ConvolutionCases cases;
  const auto add = [&](std::size_t rows, std::size_t channels) {
    for (const Fill fill : kFills) cases.push_back(std::make_unique<SnakeCase>(draw, rows, channels, fill));
  };
  for (const std::size_t channels : {1u, 7u, 8u, 15u, 16u, 17u, 33u}) add(3, channels);
  for (int i = 0; i < 4; ++i) add(draw.count(1, 20), draw.count(1, 300));
  return cases;
}

ConvolutionCases conv1d_cases(Draw draw) {
  ConvolutionCases cases;
  const auto add = [&](const Conv1dSizes& sizes) {
    for (const Fill fill : kFills) {
      for (const bool fused : {false, true}) {
        cases.push_back(std::make_unique<Conv1dCase>(draw, sizes, fill, fused));
      }
    }
  };
  add({{1, 1, 1}, 1, 1, 1, 0});
  for (const std::size_t channels : {15u, 17u, 33u}) add({{channels, 16, 3}, 17, 1, 1, 1});
  for (const std::size_t dilation : {1u, 3u, 9u}) add({{31, 33, 7}, 40, 1, dilation, 3 * dilation});
  for (const std::size_t stride : {2u, 6u}) add({{20, 9, 2 * stride}, 45, stride, 1, stride / 2});
  for (int i = 0; i < 4; ++i) {
    add({{draw.count(1, 50), draw.count(1, 50), draw.count(1, 7)},
         draw.count(20, 40),
         draw.count(1, 3),
         draw.count(1, 3),
         draw.count(0, 9)});
  }
  return cases;
}

ConvolutionCases conv_transpose1d_cases(Draw draw) {
  ConvolutionCases cases;
  const auto add = [&](const TransposeSizes& sizes) {
    for (const Fill fill : kFills) {
      for (const bool fused : {false, true}) {
        cases.push_back(std::make_unique<ConvTranspose1dCase>(draw, sizes, fill, fused));
      }
    }
  };
  add({{1, 1, 2}, 1, 1, 0});
  for (const std::size_t stride : {2u, 4u, 6u, 10u}) add({{17, 33, 2 * stride}, 13, stride, stride / 2});
  for (const std::size_t channels : {15u, 17u, 33u}) add({{16, channels, 4}, 12, 2, 1});
  for (int i = 0; i < 4; ++i) {
    add({{draw.count(1, 50), draw.count(1, 50), draw.count(4, 9)},
         draw.count(5, 25),
         draw.count(1, 5),
         draw.count(0, 2)});
  }
  return cases;
}

}  // namespace assay::lab
