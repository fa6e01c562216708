// Ops whose rows are independent: matmul, rms_norm, rope, swiglu, embed.

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/dtype.hpp"
#include "lab/gate/op_case_values.hpp"

namespace assay::lab {
namespace {

using Cases = std::vector<std::unique_ptr<OpCase>>;

class MatmulCase final : public OpCase {
 public:
  MatmulCase(Draw& draw, std::size_t m, std::size_t n, std::size_t k, Fill fill, bool accumulate)
      : m_(m), n_(n), k_(k), fill_(fill), accumulate_(accumulate) {
    x_ = draw.values(m * k, fill);
    w_ = draw.values(n * k, Fill::ordinary);
    residual_ = draw.values(m * n, accumulate ? Fill::ordinary : Fill::zeros);
  }

  std::string name() const override {
    return fmt::format("m={} n={} k={} {}{}", m_, n_, k_, to_string(fill_), accumulate_ ? " accumulate" : "");
  }

  Answer exact() const override {
    std::vector<double> y(m_ * n_);
    for (std::size_t i = 0; i < m_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        double sum = residual_[i * n_ + j];
        for (std::size_t l = 0; l < k_; ++l) {
          sum += static_cast<double>(x_[i * k_ + l]) * static_cast<double>(w_[j * k_ + l]);
        }
        y[i * n_ + j] = sum;
      }
    }
    return one_array({m_, n_}, std::move(y));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    const ops::MatmulWeight packed =
        selection.matmul->pack(n_, k_, [&](std::size_t first, std::size_t count, std::span<float> rows) {
          std::memcpy(rows.data(), w_.data() + first * k_, count * k_ * sizeof(float));
        });
    std::vector<float> y = residual_;
    ops::matmul(
        context,
        {.x = {x_.data(), k_}, .m = m_, .w = &packed, .y = {y.data(), n_}, .accumulate = accumulate_});
    return one_array({m_, n_}, std::move(y));
  }

 private:
  std::size_t m_, n_, k_;
  Fill fill_;
  bool accumulate_;
  std::vector<float> x_, w_, residual_;
};

class RmsNormCase final : public OpCase {
 public:
  RmsNormCase(Draw& draw, std::size_t rows, std::size_t groups, std::size_t dim, Fill fill, bool gated)
      : rows_(rows), groups_(groups), dim_(dim), fill_(fill) {
    x_ = draw.values(rows * groups * dim, fill);
    w_ = draw.values(dim, Fill::ordinary);
    // Gates far to both sides, where silu is the identity and where it is almost nothing.
    if (gated) gate_ = draw.uniform(rows * groups * dim, -30, 30);
  }

  std::string name() const override {
    return fmt::format("rows={} groups={} dim={} {}{}", rows_, groups_, dim_, to_string(fill_),
                       gate_.empty() ? "" : " gated");
  }

  Answer exact() const override {
    std::vector<double> y(x_.size());
    for (std::size_t first = 0; first < x_.size(); first += dim_) {
      double squares = 0;
      for (std::size_t i = 0; i < dim_; ++i) {
        squares += static_cast<double>(x_[first + i]) * static_cast<double>(x_[first + i]);
      }
      const double scale = 1 / std::sqrt(squares / static_cast<double>(dim_) + static_cast<double>(kEps));
      for (std::size_t i = 0; i < dim_; ++i) {
        const double gate = gate_.empty() ? 1 : gate_[first + i] * exact_sigmoid(gate_[first + i]);
        y[first + i] = x_[first + i] * scale * w_[i] * gate;
      }
    }
    return one_array({rows_, groups_, dim_}, std::move(y));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> y(x_.size());
    const std::size_t stride = groups_ * dim_;
    selection.rms_norm->run(context, {.rows = rows_,
                                      .groups = groups_,
                                      .dim = dim_,
                                      .x = {x_.data(), stride},
                                      .w = w_.data(),
                                      .eps = kEps,
                                      .gate = {gate_.empty() ? nullptr : gate_.data(), stride},
                                      .y = {y.data(), stride}});
    return one_array({rows_, groups_, dim_}, std::move(y));
  }

 private:
  static constexpr float kEps = 1e-6f;
  std::size_t rows_, groups_, dim_;
  Fill fill_;
  std::vector<float> x_, w_, gate_;
};

class RopeCase final : public OpCase {
 public:
  RopeCase(Draw& draw, std::size_t rows, std::size_t heads, std::size_t rotary, std::size_t dim, Fill fill)
      : rows_(rows), heads_(heads), rotary_(rotary), dim_(dim), fill_(fill) {
    x_ = draw.values(rows * heads * dim, fill);
    std::vector<std::int32_t> positions(rows);
    for (auto& position : positions) position = static_cast<std::int32_t>(draw.count(0, 30000));
    cos_.resize(rows * rotary / 2);
    sin_.resize(rows * rotary / 2);
    ops::rope_table(positions, rotary, 1e7f, cos_, sin_);
  }

  std::string name() const override {
    return fmt::format("rows={} heads={} rotary={} of {} {}", rows_, heads_, rotary_, dim_, to_string(fill_));
  }

  Answer exact() const override {
    std::vector<double> y(x_.begin(), x_.end());
    const std::size_t half = rotary_ / 2;
    for (std::size_t vector = 0; vector < rows_ * heads_; ++vector) {
      for (std::size_t i = 0; i < half; ++i) {
        const double c = cos_[vector / heads_ * half + i], s = sin_[vector / heads_ * half + i];
        const double a = x_[vector * dim_ + i], b = x_[vector * dim_ + half + i];
        y[vector * dim_ + i] = a * c - b * s;
        y[vector * dim_ + half + i] = b * c + a * s;
      }
    }
    return one_array({rows_, heads_, dim_}, std::move(y));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> y = x_;
    selection.rope->run(context, {.rows = rows_,
                                  .heads = heads_,
                                  .rotary_dim = rotary_,
                                  .x = {y.data(), heads_ * dim_},
                                  .head_stride = dim_,
                                  .cos = cos_.data(),
                                  .sin = sin_.data()});
    return one_array({rows_, heads_, dim_}, std::move(y));
  }

 private:
  std::size_t rows_, heads_, rotary_, dim_;
  Fill fill_;
  std::vector<float> x_, cos_, sin_;
};

class SwigluCase final : public OpCase {
 public:
  SwigluCase(Draw& draw, std::size_t rows, std::size_t dim, Fill fill) : rows_(rows), dim_(dim), fill_(fill) {
    gate_ = fill == Fill::spread ? draw.uniform(rows * dim, -80, 80) : draw.values(rows * dim, fill);
    up_ = draw.values(rows * dim, fill);
  }

  std::string name() const override {
    return fmt::format("rows={} dim={} {}", rows_, dim_, to_string(fill_));
  }

  Answer exact() const override {
    std::vector<double> y(gate_.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = gate_[i] * exact_sigmoid(gate_[i]) * up_[i];
    return one_array({rows_, dim_}, std::move(y));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> y(gate_.size());
    selection.swiglu->run(context, {.rows = rows_,
                                    .dim = dim_,
                                    .gate = {gate_.data(), dim_},
                                    .up = {up_.data(), dim_},
                                    .y = {y.data(), dim_}});
    return one_array({rows_, dim_}, std::move(y));
  }

 private:
  std::size_t rows_, dim_;
  Fill fill_;
  std::vector<float> gate_, up_;
};

class EmbedCase final : public OpCase {
 public:
  EmbedCase(Draw& draw, DType type, std::size_t vocabulary, std::size_t dim, std::size_t tokens)
      : type_(type), vocabulary_(vocabulary), dim_(dim) {
    table_.resize(storage_bytes(type, vocabulary * dim));
    for (std::size_t i = 0; i < vocabulary * dim; ++i) {
      const auto value = static_cast<float>(draw.uniform(-2, 2));
      if (type == DType::f32) std::memcpy(table_.data() + 4 * i, &value, 4);
      const std::uint16_t half = type == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
      if (type == DType::bf16 || type == DType::f16) std::memcpy(table_.data() + 2 * i, &half, 2);
    }
    for (std::size_t i = 0; i < tokens; ++i) {
      ids_.push_back(static_cast<std::int32_t>(draw.count(0, vocabulary - 1)));
    }
    ids_.front() = 0;
    ids_.back() = static_cast<std::int32_t>(vocabulary - 1);
  }

  std::string name() const override {
    return fmt::format("{} vocabulary={} dim={} tokens={}", to_string(type_), vocabulary_, dim_, ids_.size());
  }

  Answer exact() const override {
    std::vector<double> y;
    for (const std::int32_t id : ids_) {
      for (std::size_t i = 0; i < dim_; ++i) y.push_back(value(static_cast<std::size_t>(id) * dim_ + i));
    }
    return one_array({ids_.size(), dim_}, std::move(y));
  }

  Answer run(const ops::Selection& selection, const ops::Context& context) const override {
    std::vector<float> y(ids_.size() * dim_);
    selection.embed->run(context, {.type = type_,
                                   .table = table_.data(),
                                   .vocabulary = vocabulary_,
                                   .dim = dim_,
                                   .ids = ids_,
                                   .y = {y.data(), dim_}});
    return one_array({ids_.size(), dim_}, std::move(y));
  }

 private:
  double value(std::size_t index) const {
    float wide = 0;
    std::uint16_t half = 0;
    if (type_ == DType::f32) {
      std::memcpy(&wide, table_.data() + 4 * index, 4);
      return wide;
    }
    std::memcpy(&half, table_.data() + 2 * index, 2);
    return type_ == DType::bf16 ? bf16_to_float(half) : f16_to_float(half);
  }

  DType type_;
  std::size_t vocabulary_, dim_;
  std::vector<std::byte> table_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

Cases matmul_cases(Draw draw) {
  Cases cases;
  const auto add = [&](std::size_t m, std::size_t n, std::size_t k) {
    for (const Fill fill : kFills) {
      for (const bool accumulate : {false, true}) {
        cases.push_back(std::make_unique<MatmulCase>(draw, m, n, k, fill, accumulate));
      }
    }
  };
  struct Shape {
    std::size_t m, n, k;
  };
  const std::vector<Shape> shapes{{1, 1, 1},    {1, 16, 32},   {2, 15, 31}, {3, 17, 33},
                                  {16, 64, 64}, {17, 65, 129}, {5, 48, 300}};
  for (const auto& [m, n, k] : shapes) {
    add(m, n, k);
  }
  for (int i = 0; i < 4; ++i) add(draw.count(1, 40), draw.count(1, 100), draw.count(1, 400));
  return cases;
}

Cases rms_norm_cases(Draw draw) {
  Cases cases;
  const auto add = [&](std::size_t rows, std::size_t groups, std::size_t dim) {
    for (const Fill fill : kFills) {
      for (const bool gated : {false, true}) {
        cases.push_back(std::make_unique<RmsNormCase>(draw, rows, groups, dim, fill, gated));
      }
    }
  };
  for (const std::size_t dim : {1u, 7u, 8u, 15u, 16u, 17u, 64u, 128u}) add(3, 2, dim);
  for (int i = 0; i < 4; ++i) add(draw.count(1, 9), draw.count(1, 4), draw.count(1, 700));
  return cases;
}

Cases rope_cases(Draw draw) {
  Cases cases;
  const auto add = [&](std::size_t rows, std::size_t heads, std::size_t rotary, std::size_t dim) {
    for (const Fill fill : kFills) {
      cases.push_back(std::make_unique<RopeCase>(draw, rows, heads, rotary, dim, fill));
    }
  };
  for (const std::size_t rotary : {2u, 6u, 16u, 32u, 34u, 64u}) add(5, 2, rotary, 64);
  for (int i = 0; i < 4; ++i) {
    const std::size_t rotary = 2 * draw.count(1, 64);
    add(draw.count(1, 30), draw.count(1, 4), rotary, rotary + draw.count(0, 64));
  }
  return cases;
}

Cases swiglu_cases(Draw draw) {
  Cases cases;
  const auto add = [&](std::size_t rows, std::size_t dim) {
    for (const Fill fill : kFills) cases.push_back(std::make_unique<SwigluCase>(draw, rows, dim, fill));
  };
  for (const std::size_t dim : {1u, 7u, 8u, 15u, 16u, 17u, 33u}) add(3, dim);
  for (int i = 0; i < 4; ++i) add(draw.count(1, 20), draw.count(1, 1000));
  return cases;
}

Cases embed_cases(Draw draw) {
  Cases cases;
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::size_t dim : {1u, 15u, 16u, 17u, 64u}) {
      cases.push_back(std::make_unique<EmbedCase>(draw, type, 50, dim, 9));
    }
    cases.push_back(
        std::make_unique<EmbedCase>(draw, type, draw.count(1, 300), draw.count(1, 300), draw.count(1, 40)));
  }
  return cases;
}

}  // namespace assay::lab
