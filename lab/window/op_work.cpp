#include "lab/window/op_work.hpp"

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "lab/window/op_work_convolution.hpp"
#include "lab/window/op_work_parts.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kLargestSize = std::size_t{1} << 24;
constexpr double kMostBytes = 16.0 * 1024 * 1024 * 1024;

double matmul_bytes(const OpSizes& s, double weight) {
  return kFloat * (product({s.at("m"), s.at("k")}) + product({s.at("m"), s.at("n")})) +
         weight * product({s.at("n"), s.at("k")});
}

class MatmulWork final : public OpWork {
 public:
  MatmulWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        x_(random_values(s.at("m") * s.at("k"), -1, 1)),
        y_(s.at("m") * s.at("n")),
        weight_(selection.matmul->pack(s.at("n"), s.at("k"),
                                       [&](std::size_t, std::size_t, std::span<float> rows) {
                                         const std::vector<float> values = random_values(rows.size(), -1, 1);
                                         std::copy(values.begin(), values.end(), rows.begin());
                                       })) {}

  void run() override {
    ops::matmul(context_, {.x = {x_.data(), sizes_.at("k")},
                           .m = sizes_.at("m"),
                           .w = &weight_,
                           .y = {y_.data(), sizes_.at("n")}});
  }

  WorkCost cost() const override {
    const double operations = 2 * product({sizes_.at("m"), sizes_.at("n"), sizes_.at("k")});
    const bool bf16 = weight_.form->info.precision == ops::Precision::bf16;
    return {.fp32_operations = bf16 ? 0 : operations,
            .bf16_operations = bf16 ? operations : 0,
            .bytes = matmul_bytes(sizes_, bf16 ? 2 : kFloat)};
  }

 private:
  OpSizes sizes_;
  std::vector<float> x_;
  std::vector<float> y_;
  ops::MatmulWeight weight_;
};

double attention_bytes(const OpSizes& s) {
  const std::size_t keys = s.at("inherited") + s.at("tokens");
  return kFloat * (3 * product({s.at("tokens"), s.at("heads"), s.at("head_dim")}) +
                   2 * product({keys, s.at("kv_heads"), s.at("head_dim")}));
}

/// Gated, as in Qwen3.5.
class AttentionWork final : public OpWork {
 public:
  AttentionWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        form_(selection.attention),
        width_(s.at("heads") * s.at("head_dim")),
        key_width_(s.at("kv_heads") * s.at("head_dim")),
        q_(random_values(s.at("tokens") * width_, -1, 1)),
        gate_(random_values(s.at("tokens") * width_, -2, 2)),
        k_(random_values((s.at("inherited") + s.at("tokens")) * key_width_, -1, 1)),
        v_(random_values(k_.size(), -2, 2)),
        out_(q_.size()) {
    const std::size_t inherited = s.at("inherited");
    const std::size_t own = inherited * key_width_;
    runs_ = {ops::KeyRun{{k_.data(), key_width_}, {v_.data(), key_width_}, inherited},
             ops::KeyRun{{k_.data() + own, key_width_}, {v_.data() + own, key_width_}, s.at("tokens")}};
  }

  void run() override {
    const ops::AttentionSegment segment{.first = 0,
                                        .length = sizes_.at("tokens"),
                                        .runs = std::span(runs_).subspan(runs_[0].length == 0 ? 1 : 0)};
    form_->run(context_, {.heads = sizes_.at("heads"),
                          .kv_heads = sizes_.at("kv_heads"),
                          .head_dim = sizes_.at("head_dim"),
                          .scale = 1 / std::sqrt(static_cast<float>(sizes_.at("head_dim"))),
                          .q = {q_.data(), width_},
                          .gate = {gate_.data(), width_},
                          .q_head_stride = sizes_.at("head_dim"),
                          .gate_head_stride = sizes_.at("head_dim"),
                          .out = {out_.data(), width_},
                          .segments = {&segment, 1}});
  }

  WorkCost cost() const override {
    const auto tokens = static_cast<double>(sizes_.at("tokens"));
    const double pairs = tokens * static_cast<double>(sizes_.at("inherited")) + tokens * (tokens + 1) / 2;
    return {.fp32_operations = 4 * pairs * static_cast<double>(width_), .bytes = attention_bytes(sizes_)};
  }

 private:
  OpSizes sizes_;
  const ops::AttentionForm* form_;
  std::size_t width_;
  std::size_t key_width_;
  std::vector<float> q_, gate_, k_, v_, out_;
  std::array<ops::KeyRun, 2> runs_;
};

double delta_bytes(const OpSizes& s) {
  const std::size_t keys = s.at("key_heads") * s.at("key_dim");
  const std::size_t values = s.at("value_heads") * s.at("value_dim");
  return kFloat * (product({s.at("tokens"), 2 * keys + 2 * values + 2 * s.at("value_heads")}) +
                   product({values, s.at("key_dim")}));
}

class GatedDeltaRuleWork final : public OpWork {
 public:
  GatedDeltaRuleWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        form_(selection.gated_delta_rule),
        keys_(s.at("key_heads") * s.at("key_dim")),
        values_(s.at("value_heads") * s.at("value_dim")),
        q_(random_values(s.at("tokens") * keys_, -1, 1)),
        k_(random_values(s.at("tokens") * keys_, -1, 1)),
        v_(random_values(s.at("tokens") * values_, -1, 1)),
        a_(random_values(s.at("tokens") * s.at("value_heads"), -4, 4)),
        b_(random_values(s.at("tokens") * s.at("value_heads"), -4, 4)),
        decay_(random_values(s.at("value_heads"), -2, -0.01f)),
        bias_(random_values(s.at("value_heads"), -1, 1)),
        o_(v_.size()),
        state_(values_ * s.at("key_dim")) {}

  void run() override {
    const ops::SequenceSegment segment{.length = sizes_.at("tokens"), .final = state_.data()};
    const std::size_t heads = sizes_.at("value_heads");
    form_->run(context_, {.key_heads = sizes_.at("key_heads"),
                          .value_heads = heads,
                          .key_dim = sizes_.at("key_dim"),
                          .value_dim = sizes_.at("value_dim"),
                          .q = {q_.data(), keys_},
                          .k = {k_.data(), keys_},
                          .v = {v_.data(), values_},
                          .a = {a_.data(), heads},
                          .b = {b_.data(), heads},
                          .decay = decay_.data(),
                          .dt_bias = bias_.data(),
                          .o = {o_.data(), values_},
                          .segments = {&segment, 1}});
  }

  WorkCost cost() const override {
    return {.fp32_operations = 7 * product({sizes_.at("tokens"), values_, sizes_.at("key_dim")}),
            .bytes = delta_bytes(sizes_)};
  }

 private:
  OpSizes sizes_;
  const ops::GatedDeltaRuleForm* form_;
  std::size_t keys_, values_;
  std::vector<float> q_, k_, v_, a_, b_, decay_, bias_, o_, state_;
};

double causal_conv1d_bytes(const OpSizes& s) {
  return kFloat *
         (2 * product({s.at("tokens"), s.at("channels")}) + product({s.at("width"), s.at("channels")}));
}

class CausalConv1dWork final : public OpWork {
 public:
  CausalConv1dWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        form_(selection.causal_conv1d),
        w_(random_values(s.at("width") * s.at("channels"), -1, 1)),
        x_(random_values(s.at("tokens") * s.at("channels"), -1, 1)),
        y_(x_.size()) {}

  void run() override {
    const ops::SequenceSegment segment{.length = sizes_.at("tokens")};
    form_->run(context_, {.channels = sizes_.at("channels"),
                          .width = sizes_.at("width"),
                          .w = w_.data(),
                          .x = {x_.data(), sizes_.at("channels")},
                          .y = {y_.data(), sizes_.at("channels")},
                          .segments = {&segment, 1}});
  }

  WorkCost cost() const override {
    return {.fp32_operations = 2 * product({sizes_.at("tokens"), sizes_.at("channels"), sizes_.at("width")}),
            .bytes = causal_conv1d_bytes(sizes_)};
  }

 private:
  OpSizes sizes_;
  const ops::CausalConv1dForm* form_;
  std::vector<float> w_, x_, y_;
};

double norm_bytes(const OpSizes& s) {
  return kFloat * (2 * product({s.at("rows"), s.at("dim")}) + product({s.at("dim")}));
}

class RmsNormWork final : public OpWork {
 public:
  RmsNormWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        form_(selection.rms_norm),
        w_(random_values(s.at("dim"), 0.5f, 1.5f)),
        x_(random_values(s.at("rows") * s.at("dim"), -1, 1)),
        y_(x_.size()) {}

  void run() override {
    form_->run(context_, {.rows = sizes_.at("rows"),
                          .dim = sizes_.at("dim"),
                          .x = {x_.data(), sizes_.at("dim")},
                          .w = w_.data(),
                          .eps = 1e-6f,
                          .y = {y_.data(), sizes_.at("dim")}});
  }

  WorkCost cost() const override { return {.bytes = norm_bytes(sizes_)}; }

 private:
  OpSizes sizes_;
  const ops::RmsNormForm* form_;
  std::vector<float> w_, x_, y_;
};

double swiglu_bytes(const OpSizes& s) {
  return 3 * kFloat * product({s.at("rows"), s.at("dim")});
}

class SwigluWork final : public OpWork {
 public:
  SwigluWork(const OpSizes& s, const ops::Selection& selection, device::ThreadPool& threads)
      : OpWork(threads),
        sizes_(s),
        form_(selection.swiglu),
        gate_(random_values(s.at("rows") * s.at("dim"), -4, 4)),
        up_(random_values(s.at("rows") * s.at("dim"), -1, 1)),
        y_(gate_.size()) {}

  void run() override {
    const std::size_t dim = sizes_.at("dim");
    form_->run(context_, {.rows = sizes_.at("rows"),
                          .dim = dim,
                          .gate = {gate_.data(), dim},
                          .up = {up_.data(), dim},
                          .y = {y_.data(), dim}});
  }

  WorkCost cost() const override { return {.bytes = swiglu_bytes(sizes_)}; }

 private:
  OpSizes sizes_;
  const ops::SwigluForm* form_;
  std::vector<float> gate_, up_, y_;
};

template <class OneOpWork>
std::unique_ptr<Work> make(const OpSizes& sizes, const ops::Selection& selection,
                           device::ThreadPool& threads) {
  return std::make_unique<OneOpWork>(sizes, selection, threads);
}

struct TimedOp {
  std::string_view name;
  std::vector<std::string_view> sizes;
  double (*bytes)(const OpSizes&);
  std::unique_ptr<Work> (*make)(const OpSizes&, const ops::Selection&, device::ThreadPool&);
};

const std::vector<TimedOp>& table() {
  static const std::vector<TimedOp> list{
      {"matmul", {"m", "n", "k"}, [](const OpSizes& s) { return matmul_bytes(s, kFloat); }, make<MatmulWork>},
      {"attention",
       {"tokens", "heads", "kv_heads", "head_dim", "inherited"},
       attention_bytes,
       make<AttentionWork>},
      {"gated_delta_rule",
       {"tokens", "key_heads", "value_heads", "key_dim", "value_dim"},
       delta_bytes,
       make<GatedDeltaRuleWork>},
      {"causal_conv1d", {"tokens", "channels", "width"}, causal_conv1d_bytes, make<CausalConv1dWork>},
      {"rms_norm", {"rows", "dim"}, norm_bytes, make<RmsNormWork>},
      {"swiglu", {"rows", "dim"}, swiglu_bytes, make<SwigluWork>},
      {"conv1d",
       {"length", "in_channels", "out_channels", "kernel", "stride", "dilation", "padding"},
       [](const OpSizes& s) { return conv1d_bytes(s, kFloat); },
       make_conv1d_work},
      {"conv_transpose1d",
       {"length", "in_channels", "out_channels", "kernel", "stride", "padding"},
       [](const OpSizes& s) { return conv_transpose1d_bytes(s, kFloat); },
       make_conv_transpose1d_work},
      {"snake", {"rows", "channels"}, snake_bytes, make_snake_work}};
  return list;
}

const TimedOp& find_op(std::string_view op, const std::string& where) {
  for (const TimedOp& known : table()) {
    if (known.name == op) return known;
  }
  throw Error(ErrorKind::unsupported, {.where = where,
                                       .found = fmt::format("op '{}'", op),
                                       .expected = fmt::format("one of {}", fmt::join(timed_ops(), ", "))});
}

[[noreturn]] void refuse_work(const std::string& where, std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = where, .found = std::move(found), .expected = std::move(expected)});
}

void check_multiple(const OpSizes& sizes, const char* part, const char* whole, const std::string& where) {
  if (!sizes.contains(part) || sizes.at(whole) % sizes.at(part) == 0) return;
  refuse_work(where, fmt::format("{} {} on {} {}", whole, sizes.at(whole), part, sizes.at(part)),
              fmt::format("{} a multiple of {}", whole, part));
}

}  // namespace

std::vector<std::string> timed_ops() {
  std::vector<std::string> names;
  for (const TimedOp& op : table()) names.emplace_back(op.name);
  return names;
}

void check_op(std::string_view op, const OpSizes& sizes, const std::string& where) {
  const TimedOp& known = find_op(op, where);
  for (const std::string_view name : known.sizes) {
    const auto found = sizes.find(std::string(name));
    if (found == sizes.end()) {
      refuse_work(where, fmt::format("no size '{}'", name),
                  fmt::format("{} of {}", fmt::join(known.sizes, ", "), op));
    }
    const std::size_t least = name == "inherited" || name == "padding" ? 0 : 1;
    if (found->second < least || found->second > kLargestSize) {
      refuse_work(where, fmt::format("{} {}", name, found->second),
                  fmt::format("{} to {}", least, kLargestSize));
    }
  }
  if (sizes.size() > known.sizes.size()) {
    refuse_work(where, fmt::format("{} sizes", sizes.size()),
                fmt::format("{} of {} and no others", fmt::join(known.sizes, ", "), op));
  }
  check_multiple(sizes, "kv_heads", "heads", where);
  check_multiple(sizes, "key_heads", "value_heads", where);
  if (op == "causal_conv1d" && (sizes.at("width") < 2 || sizes.at("width") > 8)) {
    refuse_work(where, fmt::format("width {}", sizes.at("width")), "2 to 8");
  }
  if ((op == "conv1d" && conv1d_rows(sizes) == 0) ||
      (op == "conv_transpose1d" && conv_transpose1d_rows(sizes) == 0)) {
    refuse_work(where, "no rows of output", "a length that the kernel and the padding leave some of");
  }
  if (const double bytes = known.bytes(sizes); bytes > kMostBytes) {
    refuse_work(where, fmt::format("values of {:.1f} GiB", bytes / (kMostBytes / 16)), "at most 16 GiB");
  }
}

double op_bytes(std::string_view op, const OpSizes& sizes) {
  return find_op(op, "op").bytes(sizes);
}

std::unique_ptr<Work> make_op_work(std::string_view op, const OpSizes& sizes, const ops::Selection& selection,
                                   device::ThreadPool& threads) {
  check_op(op, sizes, std::string(op));
  return find_op(op, "op").make(sizes, selection, threads);
}

}  // namespace assay::lab
