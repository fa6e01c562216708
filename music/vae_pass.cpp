#include "music/vae_pass.hpp"

namespace assay::music {

std::vector<VaeWindow> vae_windows(std::size_t frames, std::size_t reach, const VaeOptions& options) {
  if (options.window == 0) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "VAE window", .found = "0 frames", .expected = "at least 1"});
  }
  const std::size_t overlap = options.overlap.value_or(reach);
  const std::size_t count = frames / options.window + (frames % options.window == 0 ? 0 : 1);
  std::vector<VaeWindow> windows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * frames / count;
    const std::size_t end = (i + 1) * frames / count;
    windows.push_back({begin, end, begin - std::min(begin, overlap), end + std::min(frames - end, overlap)});
  }
  return windows;
}

void check_finite_rows(std::span<const float> values, std::size_t width, std::size_t first_row,
                       const char* where, const char* what) {
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return;
  const auto index = static_cast<std::size_t>(bad - values.begin());
  throw Error(
      ErrorKind::non_finite,
      {.where = where,
       .found = std::to_string(*bad) + " in " + what + " " + std::to_string(first_row + index / width) +
                ", channel " + std::to_string(index % width),
       .expected = "finite values",
       .advice = "the input is beyond what the weights were made for, or they are "
                 "damaged"});
}

void check_rows(std::span<const float> values, std::size_t width, const char* where, const char* what) {
  if (values.size() % width != 0) {
    throw Error(ErrorKind::invalid_argument, {.where = where,
                                              .found = std::to_string(values.size()) + " values",
                                              .expected = "a multiple of " + std::to_string(width)});
  }
  check_finite_rows(values, width, 0, where, what);
}

void check_strides(const VaeConfig& config) {
  if (config.strides.size() != config.multiples.size() || config.strides.empty()) {
    throw Error(ErrorKind::mismatch,
                {.where = "VAE configuration",
                 .found = std::to_string(config.multiples.size()) + " channel multiples and " +
                          std::to_string(config.strides.size()) + " strides",
                 .expected = "as many of one as of the other"});
  }
  for (const std::size_t stride : config.strides) {
    if (stride != 0 && stride % 2 == 0) continue;
    throw Error(ErrorKind::unsupported, {.where = "VAE configuration, downsampling_ratios",
                                         .found = "a stride of " + std::to_string(stride),
                                         .expected = "even strides"});
  }
}

}  // namespace assay::music
