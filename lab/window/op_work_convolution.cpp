#include "lab/window/op_work_convolution.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/window/op_work_parts.hpp"

namespace assay::lab {
namespace {

ops::ConvShape shape_of(const OpSizes& s) {
  return {.out_channels = s.at("out_channels"), .in_channels = s.at("in_channels"), .kernel = s.at("kernel")};
}

void fill_random(std::span<float> rows) {
  const std::vector<float> values = random_values(rows.size(), -1, 1);
  std::copy(values.begin(), values.end(), rows.begin());
}

/// How many i in [0, count) have i · step + offset in [0, limit).
std::size_t count_inside(std::size_t count, std::size_t step, std::ptrdiff_t offset, std::size_t limit) {
  const auto stride = static_cast<std::ptrdiff_t>(step);
  const auto room = static_cast<std::ptrdiff_t>(limit) - offset;
  const std::ptrdiff_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const std::ptrdiff_t end =
      room <= 0 ? 0 : std::min(static_cast<std::ptrdiff_t>(count), (room + stride - 1) / stride);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, end - first));
}

/// Rows times taps that meet: a product with a zero of the padding need not be made.
std::size_t conv1d_pairs(const OpSizes& s) {
  std::size_t pairs = 0;
  for (std::size_t j = 0; j < s.at("kernel"); ++j) {
    const auto offset =
        static_cast<std::ptrdiff_t>(j * s.at("dilation")) - static_cast<std::ptrdiff_t>(s.at("padding"));
    pairs += count_inside(conv1d_rows(s), s.at("stride"), offset, s.at("length"));
  }
  return pairs;
}

std::size_t conv_transpose1d_pairs(const OpSizes& s) {
  std::size_t pairs = 0;
  for (std::size_t j = 0; j < s.at("kernel"); ++j) {
    const auto offset = static_cast<std::ptrdiff_t>(j) - static_cast<std::ptrdiff_t>(s.at("padding"));
    pairs += count_inside(s.at("length"), s.at("stride"), offset, conv_transpose1d_rows(s));
  }
  return pairs;
}

double convolution_bytes(const OpSizes& s, std::size_t rows, double weight) {
  const std::size_t in = s.at("in_channels");
  const std::size_t out = s.at("out_channels");
  return kFloat * (product({s.at("length"), in}) + product({rows, out}) + product({out})) +
         weight * product({s.at("kernel"), in, out});
}

/// Operands of either convolution.
struct Operands {
  Operands(const OpSizes& s, std::size_t rows)
      : x(random_values(s.at("length") * s.at("in_channels"), -1, 1)),
        bias(random_values(s.at("out_channels"), -1, 1)),
        y(rows * s.at("out_channels")) {}

  std::vector<float> x, bias, y;
};

WorkCost product_cost(const OpSizes& s, std::size_t pairs, ops::Precision precision,
                      double (*bytes)(const OpSizes&, double)) {
  const double operations = 2 * product({pairs, s.at("in_channels"), s.at("out_channels")});
  const bool bf16 = precision == ops::Precision::bf16;
  return {.fp32_operations = bf16 ? 0 : operations,
          .bf16_operations = bf16 ? operations : 0,
          .bytes = bytes(s, bf16 ? 2 : kFloat)};
}

class Conv1dWork final : public OpWork {
 public:
  Conv1dWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        operands_(s, conv1d_rows(s)),
        weight_(selection.conv1d->pack(
            shape_of(s), [](std::size_t, std::size_t, std::span<float> rows) { fill_random(rows); })) {}

  void run() override {
    ops::conv1d(context_, {.x = {operands_.x.data(), sizes_.at("in_channels")},
                           .length = sizes_.at("length"),
                           .w = &weight_,
                           .stride = sizes_.at("stride"),
                           .dilation = sizes_.at("dilation"),
                           .padding = sizes_.at("padding"),
                           .fusion = {.bias = operands_.bias.data()},
                           .y = {operands_.y.data(), sizes_.at("out_channels")}});
  }

  WorkCost cost() const override {
    return product_cost(sizes_, conv1d_pairs(sizes_), weight_.form->info.precision, conv1d_bytes);
  }

 private:
  OpSizes sizes_;
  Operands operands_;
  ops::Conv1dWeight weight_;
};

class ConvTranspose1dWork final : public OpWork {
 public:
  ConvTranspose1dWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        operands_(s, conv_transpose1d_rows(s)),
        weight_(selection.conv_transpose1d->pack(
            shape_of(s), s.at("stride"),
            [](std::size_t, std::size_t, std::span<float> rows) { fill_random(rows); })) {}

  void run() override {
    ops::conv_transpose1d(context_, {.x = {operands_.x.data(), sizes_.at("in_channels")},
                                     .length = sizes_.at("length"),
                                     .w = &weight_,
                                     .padding = sizes_.at("padding"),
                                     .fusion = {.bias = operands_.bias.data()},
                                     .y = {operands_.y.data(), sizes_.at("out_channels")}});
  }

  WorkCost cost() const override {
    return product_cost(sizes_, conv_transpose1d_pairs(sizes_), weight_.form->info.precision,
                        conv_transpose1d_bytes);
  }

 private:
  OpSizes sizes_;
  Operands operands_;
  ops::ConvTranspose1dWeight weight_;
};

class SnakeWork final : public OpWork {
 public:
  SnakeWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        form_(selection.snake),
        alpha_(random_values(s.at("channels"), 0.2f, 3)),
        inverse_beta_(random_values(s.at("channels"), 0.1f, 1)),
        x_(random_values(s.at("rows") * s.at("channels"), -2, 2)),
        y_(x_.size()) {}

  void run() override {
    const std::size_t channels = sizes_.at("channels");
    form_->run(context_, {.rows = sizes_.at("rows"),
                          .channels = channels,
                          .x = {x_.data(), channels},
                          .snake = {alpha_.data(), inverse_beta_.data()},
                          .y = {y_.data(), channels}});
  }

  WorkCost cost() const override { return {.bytes = snake_bytes(sizes_)}; }

 private:
  OpSizes sizes_;
  const ops::SnakeForm* form_;
  std::vector<float> alpha_, inverse_beta_, x_, y_;
};

}  // namespace

std::size_t conv1d_rows(const OpSizes& sizes) {
  ops::Conv1dWeight weight;
  weight.shape = shape_of(sizes);
  return ops::conv1d_length({.length = sizes.at("length"),
                             .w = &weight,
                             .stride = sizes.at("stride"),
                             .dilation = sizes.at("dilation"),
                             .padding = sizes.at("padding")});
}

std::size_t conv_transpose1d_rows(const OpSizes& sizes) {
  ops::ConvTranspose1dWeight weight;
  weight.shape = shape_of(sizes);
  weight.stride = sizes.at("stride");
  return ops::conv_transpose1d_length(
      {.length = sizes.at("length"), .w = &weight, .padding = sizes.at("padding")});
}

double conv1d_bytes(const OpSizes& sizes, double weight) {
  return convolution_bytes(sizes, conv1d_rows(sizes), weight);
}

double conv_transpose1d_bytes(const OpSizes& sizes, double weight) {
  return convolution_bytes(sizes, conv_transpose1d_rows(sizes), weight);
}

double snake_bytes(const OpSizes& sizes) {
  return 2 * kFloat * (product({sizes.at("rows"), sizes.at("channels")}) + product({sizes.at("channels")}));
}

std::unique_ptr<Work> make_conv1d_work(const OpSizes& sizes, const ops::Selection& selection,
                                       device::ThreadPool& threads) {
  return std::make_unique<Conv1dWork>(sizes, selection, threads);
}

std::unique_ptr<Work> make_conv_transpose1d_work(const OpSizes& sizes, const ops::Selection& selection,
                                                 device::ThreadPool& threads) {
  return std::make_unique<ConvTranspose1dWork>(sizes, selection, threads);
}

std::unique_ptr<Work> make_snake_work(const OpSizes& sizes, const ops::Selection& selection,
                                      device::ThreadPool& threads) {
  return std::make_unique<SnakeWork>(sizes, selection, threads);
}

}  // namespace assay::lab
