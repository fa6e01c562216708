// The files that describe an ACE-Step checkpoint, and the names of its tensors: whatever they are, sizes
// from which no size that is made of them overflows, a name of one part at most, or an Error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "music/config.hpp"
#include "music/part_names.hpp"

namespace {

using namespace assay::music;

void check(bool holds) {
  if (!holds) std::abort();
}

std::uint64_t product(const std::vector<std::size_t>& sizes) {
  std::uint64_t result = 1;
  for (const std::size_t size : sizes) check(size > 0 && !__builtin_mul_overflow(result, size, &result));
  return result;
}

void check_block(const BlockConfig& block) {
  check(block.heads % block.kv_heads == 0 && block.head_dim % 2 == 0);
  check(block.rope_theta > 0 && block.rms_norm_eps > 0 && block.sliding_window > 0);
  product({block.hidden_size, block.intermediate_size, 2});
  product({block.hidden_size, block.heads, block.head_dim});
}

void check_tokens(const AudioTokenConfig& config) {
  check_block(config.stack.block);
  product({config.latent_width, config.pool_window, config.stack.block.hidden_size});
  check(product(config.levels) <= std::uint64_t{std::numeric_limits<std::int32_t>::max()});
}

void check_dit(const DitConfig& config) {
  check_block(config.stack.block);
  check(!config.stack.sliding.empty() && config.in_channels == 3 * config.latent_width);
  product({config.in_channels, config.patch, config.stack.block.hidden_size});
}

void check_condition(const ConditionConfig& config) {
  check_block(config.block);
  product({config.text_width, config.block.hidden_size});
  product({config.timbre_width, config.block.hidden_size});
}

void check_vae(const VaeConfig& config) {
  check(config.multiples.size() == config.strides.size() && !config.strides.empty());
  check(product(config.strides) == config.samples_per_frame());
  const std::size_t widest = *std::max_element(config.multiples.begin(), config.multiples.end());
  const std::size_t channels = std::max(config.decoder_channels, config.encoder_channels) * widest;
  product({channels, channels, 2 * *std::max_element(config.strides.begin(), config.strides.end())});
  product({config.samples_per_frame(), 15000, channels});  // ten minutes of frames
}

void check_original(const PartConfigs& parts) {
  check_dit(parts.dit);
  check_condition(parts.condition);
  check_tokens(*parts.tokenizer);
}

template <class Parse, class Check>
void read(std::string_view json, const Parse& parse, const Check& check_config) {
  try {
    check_config(parse(json, "config.json"));
  } catch (const assay::Error& error) {
    check(*error.what() != '\0');
  }
}

void check_name(std::string_view name) {
  int parts = 0;
  for (const Part part : {Part::text_encoder, Part::condition_encoder, Part::transformer,
                          Part::audio_tokenizer, Part::audio_detokenizer, Part::vae}) {
    if (part_name(part, name)) ++parts;
  }
  check(parts <= 1);
}

}  // namespace

/// The input is a config.json of any part, a zero byte, and a tensor's name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view json = input.substr(0, end);
  read(json, parse_dit_config, check_dit);
  read(json, parse_condition_config, check_condition);
  read(json, parse_audio_tokenizer_config, check_tokens);
  read(json, parse_audio_detokenizer_config, check_tokens);
  read(json, parse_vae_config, check_vae);
  read(json, parse_original_config, check_original);
  if (end < size) check_name(input.substr(end + 1));
  return 0;
}
