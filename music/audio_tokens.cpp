#include "music/audio_tokens.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.hpp"

namespace assay::music {
namespace {

constexpr const char* kTokenizerStage = "audio tokenizer";
constexpr const char* kDetokenizerStage = "audio detokenizer";

/// Windows run at once: rows enough for the products, few enough that ten minutes need no more memory than
/// one.
constexpr std::size_t kWindowsAtOnce = 256;

float dot(std::span<const float> x, const float* w) {
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * w[i];
  return sum;
}

std::vector<float> read_all(const formats::TensorSource& source, const std::string& name,
                            std::span<const std::uint64_t> shape) {
  std::vector<float> values = formats::read_tensor(source, name, shape);
  source.release(name);
  return values;
}

std::size_t count_token_rows(std::span<const float> values, std::size_t width, const std::string& where) {
  if (!values.empty() && values.size() % width == 0) return values.size() / width;
  throw Error(ErrorKind::mismatch, {.where = where,
                                    .found = std::to_string(values.size()) + " values",
                                    .expected = "one or more rows of " + std::to_string(width)});
}

/// Every frame of a window becomes what its first frame holds plus the special token of its place.
void spread_windows(std::span<float> rows, std::size_t window, std::span<const float> special_tokens) {
  const std::size_t width = special_tokens.size() / window;
  for (std::size_t base = 0; base < rows.size(); base += special_tokens.size()) {
    // Backwards: the first frame is what the others are made of.
    for (std::size_t i = special_tokens.size(); i-- > 0;) {
      rows[base + i] = rows[base + i % width] + special_tokens[i];
    }
  }
}

}  // namespace

Quantizer::Quantizer(const AudioTokenConfig& config, const formats::TensorSource& source,
                     const std::string& prefix)
    : levels_(config.levels),
      width_(config.code_width),
      codebook_size_(static_cast<std::int32_t>(config.codebook_size())) {
  const std::uint64_t dims = levels_.size();
  const std::uint64_t width = width_;
  in_ = read_all(source, prefix + "project_in.weight", std::array{dims, width});
  in_bias_ = read_all(source, prefix + "project_in.bias", std::array{dims});
  out_ = read_all(source, prefix + "project_out.weight", std::array{width, dims});
  out_bias_ = read_all(source, prefix + "project_out.bias", std::array{width});
}

std::vector<std::int32_t> Quantizer::quantize(std::span<const float> rows) const {
  std::vector<std::int32_t> codes;
  codes.reserve(rows.size() / width_);
  for (std::size_t row = 0; row < rows.size() / width_; ++row) {
    const std::span<const float> x = rows.subspan(row * width_, width_);
    std::int32_t code = 0;
    std::int32_t basis = 1;
    for (std::size_t d = 0; d < levels_.size(); ++d) {
      const float steps = static_cast<float>(levels_[d] - 1);
      const float bound = 1.0f + 1.0f / steps;
      const float squashed = std::tanh((dot(x, in_.data() + d * width_) + in_bias_[d]) / bound) * bound;
      const float level = std::floor(steps * (std::clamp(squashed, -1.0f, 1.0f) + 1.0f) / 2.0f + 0.5f);
      code += static_cast<std::int32_t>(level) * basis;
      basis *= static_cast<std::int32_t>(levels_[d]);
    }
    codes.push_back(code);
  }
  return codes;
}

std::vector<float> Quantizer::embed(std::span<const std::int32_t> codes) const {
  std::vector<float> rows(codes.size() * width_);
  std::vector<float> levels(levels_.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < 0 || codes[i] >= codebook_size_) {
      throw Error(ErrorKind::invalid_argument, {.where = "audio code " + std::to_string(i),
                                                .found = std::to_string(codes[i]),
                                                .expected = "0 to " + std::to_string(codebook_size_ - 1)});
    }
    auto rest = static_cast<std::size_t>(codes[i]);
    for (std::size_t d = 0; d < levels.size(); ++d) {
      levels[d] = static_cast<float>(rest % levels_[d]) * (2.0f / static_cast<float>(levels_[d] - 1)) - 1.0f;
      rest /= levels_[d];
    }
    for (std::size_t n = 0; n < width_; ++n) {
      rows[i * width_ + n] = dot(levels, out_.data() + n * levels.size()) + out_bias_[n];
    }
  }
  return rows;
}

AudioTokenizer::AudioTokenizer(const AudioTokenConfig& config, const formats::TensorSource& source,
                               const ops::Selection& forms, device::ThreadPool& threads,
                               const std::stop_token& stop)
    : AudioTokenizer(config, WeightLoader(source, *forms.matmul, {stop, kTokenizerStage}), forms, threads) {}

AudioTokenizer::AudioTokenizer(const AudioTokenConfig& config, const WeightLoader& loader,
                               const ops::Selection& forms, device::ThreadPool& threads)
    : config_(config),
      forms_(forms),
      threads_(threads),
      acoustic_projection_(
          loader.linear("audio_acoustic_proj", config.stack.block.hidden_size, config.latent_width)),
      embedding_(loader.linear("attention_pooler.embed_tokens", config.stack.block.hidden_size,
                               config.stack.block.hidden_size)),
      special_token_(loader.values("attention_pooler.special_token",
                                   std::array<std::uint64_t, 3>{1, 1, config.stack.block.hidden_size})),
      pooler_(loader, config.stack, "attention_pooler."),
      quantizer_(config, loader.source(), "quantizer.") {}

std::vector<std::int32_t> AudioTokenizer::encode(std::span<const float> latents,
                                                 std::span<const float> silence,
                                                 const std::stop_token& stop) {
  const std::size_t channels = config_.latent_width;
  const std::size_t window = config_.pool_window;
  const std::size_t frames = count_token_rows(latents, channels, "audio tokenizer: latents");
  const std::size_t padding = (window - frames % window) % window;
  if (count_token_rows(silence, channels, "audio tokenizer: silence") < padding) {
    throw Error(ErrorKind::mismatch, {.where = "audio tokenizer: silence",
                                      .found = std::to_string(silence.size() / channels) + " frames",
                                      .expected = "at least " + std::to_string(padding)});
  }
  std::vector<float> padded(latents.begin(), latents.end());
  padded.insert(padded.end(), silence.begin(),
                silence.begin() + static_cast<std::ptrdiff_t>(padding * channels));
  const std::size_t windows = (frames + padding) / window;

  std::vector<std::int32_t> codes;
  for (std::size_t first = 0; first < windows; first += kWindowsAtOnce) {
    const std::size_t count = std::min(kWindowsAtOnce, windows - first);
    const std::vector<std::int32_t> part = encode_windows(
        std::span(padded).subspan(first * window * channels, count * window * channels), count, stop);
    codes.insert(codes.end(), part.begin(), part.end());
  }
  return codes;
}

std::vector<std::int32_t> AudioTokenizer::encode_windows(std::span<const float> latents, std::size_t count,
                                                         const std::stop_token& stop) {
  const device::Arena::Scope scope(arena_);
  const ops::Context context{threads_, arena_};
  const std::size_t channels = config_.latent_width;
  const std::size_t window = config_.pool_window;
  const std::size_t width = config_.stack.block.hidden_size;
  const std::span<float> projected = arena_.allocate<float>(count * window * width);
  const std::span<float> embedded = arena_.allocate<float>(count * window * width);
  const std::span<float> rows = arena_.allocate<float>(count * (window + 1) * width);
  run_linear(context, acoustic_projection_, {latents.data(), channels}, count * window,
             {projected.data(), width});
  run_linear(context, embedding_, {projected.data(), width}, count * window, {embedded.data(), width});
  for (std::size_t i = 0; i < count; ++i) {
    float* const to = rows.data() + i * (window + 1) * width;
    std::ranges::copy(special_token_, to);
    std::copy_n(embedded.data() + i * window * width, window * width, to + width);
  }
  const std::vector<std::size_t> lengths(count, window + 1);
  pooler_.run(context, forms_, lengths, rows, {stop, kTokenizerStage});
  // What stands at the special token pools its window.
  const std::span<float> pooled = projected.first(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    std::copy_n(rows.data() + i * (window + 1) * width, width, pooled.data() + i * width);
  }
  check_finite(pooled, kTokenizerStage);
  return quantizer_.quantize(pooled);
}

std::size_t AudioTokenizer::weight_bytes() const {
  return acoustic_projection_.w.data.bytes() + embedding_.w.data.bytes() + pooler_.weight_bytes();
}

AudioDetokenizer::AudioDetokenizer(const AudioTokenConfig& config, const formats::TensorSource& source,
                                   const ops::Selection& forms, device::ThreadPool& threads,
                                   const std::stop_token& stop)
    : AudioDetokenizer(config, WeightLoader(source, *forms.matmul, {stop, kDetokenizerStage}), forms,
                       threads) {}

AudioDetokenizer::AudioDetokenizer(const AudioTokenConfig& config, const WeightLoader& loader,
                                   const ops::Selection& forms, device::ThreadPool& threads)
    : config_(config),
      forms_(forms),
      threads_(threads),
      embedding_(
          loader.linear("embed_tokens", config.stack.block.hidden_size, config.stack.block.hidden_size)),
      special_tokens_(
          loader.values("special_tokens",
                        std::array<std::uint64_t, 3>{1, config.pool_window, config.stack.block.hidden_size})),
      stack_(loader, config.stack, ""),
      projection_(loader.linear("proj_out", config.latent_width, config.stack.block.hidden_size)) {}

std::vector<float> AudioDetokenizer::decode(std::span<const float> rows, const std::stop_token& stop) {
  const std::size_t window = config_.pool_window;
  const std::size_t channels = config_.latent_width;
  const std::size_t width = config_.stack.block.hidden_size;
  const std::size_t codes = count_token_rows(rows, width, "audio detokenizer: codes");
  const ops::Context context{threads_, arena_};
  std::vector<float> latents(codes * window * channels);
  for (std::size_t first = 0; first < codes; first += kWindowsAtOnce) {
    const device::Arena::Scope scope(arena_);
    const std::size_t count = std::min(kWindowsAtOnce, codes - first);
    const std::span<float> spread = arena_.allocate<float>(count * window * width);
    run_linear(context, embedding_, {rows.data() + first * width, width}, count,
               {spread.data(), window * width});
    spread_windows(spread, window, special_tokens_);
    const std::vector<std::size_t> lengths(count, window);
    stack_.run(context, forms_, lengths, spread, {stop, kDetokenizerStage});
    run_linear(context, projection_, {spread.data(), width}, count * window,
               {latents.data() + first * window * channels, channels});
  }
  check_finite(latents, kDetokenizerStage);
  return latents;
}

std::size_t AudioDetokenizer::weight_bytes() const {
  return embedding_.w.data.bytes() + stack_.weight_bytes() + projection_.w.data.bytes();
}

}  // namespace assay::music
