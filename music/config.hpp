#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the parts of an ACE-Step 1.5 checkpoint need to know of themselves, from their config.json. Whoever
/// makes one has checked its sizes: positive, of this world, and in agreement with each other. The released
/// sizes are in diffusers' classes of the same names (huggingface/diffusers,
/// src/diffusers/pipelines/ace_step/modeling_ace_step.py and models/transformers/ace_step_transformer.py,
/// models/autoencoders/autoencoder_oobleck.py).
namespace assay::music {

/// The attention and feed-forward sizes that the DiT and every encoder share.
struct BlockConfig {
  std::size_t hidden_size = 0;
  std::size_t intermediate_size = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  float rope_theta = 0;
  float rms_norm_eps = 0;
  std::size_t sliding_window = 0;  ///< frames to either side that a sliding layer sees
};

/// A stack of blocks; sliding[i] says whether layer i sees a window or everything.
struct StackConfig {
  BlockConfig block;
  std::vector<bool> sliding;
};

struct DitConfig {
  StackConfig stack;
  std::size_t in_channels = 0;     ///< context and noisy latents side by side: 192
  std::size_t latent_width = 0;    ///< 64
  std::size_t patch = 0;           ///< frames that make one token: 2
  std::size_t condition_size = 0;  ///< width of a condition row: the condition encoder's hidden size
  bool turbo = false;              ///< distilled: a few steps, no guidance
};

struct ConditionConfig {
  BlockConfig block;
  std::vector<bool> lyric_sliding;
  std::vector<bool> timbre_sliding;
  std::size_t text_width = 0;    ///< hidden size of the text encoder
  std::size_t timbre_width = 0;  ///< 64
};

/// Of the audio tokenizer and of the detokenizer: each pools or spreads `pool_window` frames a code.
struct AudioTokenConfig {
  StackConfig stack;
  std::size_t latent_width = 0;     ///< 64
  std::size_t pool_window = 0;      ///< 5
  std::size_t code_width = 0;       ///< fsq_dim
  std::vector<std::size_t> levels;  ///< of the finite scalar quantizer: 8, 8, 8, 5, 5, 5
  /// How many codes there are: the product of the levels.
  std::size_t codebook_size() const {
    std::size_t product = 1;
    for (const std::size_t level : levels) product *= level;
    return product;
  }
};

struct VaeConfig {
  std::size_t audio_channels = 0;      ///< 2
  std::size_t latent_width = 0;        ///< 64
  std::size_t decoder_channels = 0;    ///< of the decoder's last block
  std::size_t encoder_channels = 0;    ///< of the encoder's first block
  std::vector<std::size_t> multiples;  ///< of the channels, from the audio side inwards
  std::vector<std::size_t> strides;    ///< from the audio side inwards: 2, 4, 4, 6, 10
  std::size_t sample_rate = 0;         ///< 48,000
  /// Samples a latent frame: the product of the strides.
  std::size_t samples_per_frame() const {
    std::size_t product = 1;
    for (const std::size_t stride : strides) product *= stride;
    return product;
  }
};

/// The configurations of a checkpoint's parts but its text encoder's, which is a Qwen3's.
struct PartConfigs {
  DitConfig dit;
  ConditionConfig condition;
  // Audio codes: a checkpoint may come without. The detokenizer's code width and levels are the tokenizer's.
  std::optional<AudioTokenConfig> tokenizer = std::nullopt;
  std::optional<AudioTokenConfig> detokenizer = std::nullopt;
};

// Each reads the config.json of one folder of a diffusers checkpoint. Missing layer_types mean sliding and
// full in turn, sliding first. All throw Error(malformed | missing) naming `origin` and the field,
// Error(unsupported) for attention with biases, another scheme of positions or several quantizers.
DitConfig parse_dit_config(std::string_view json, const std::string& origin);
ConditionConfig parse_condition_config(std::string_view json, const std::string& origin);
AudioTokenConfig parse_audio_tokenizer_config(std::string_view json, const std::string& origin);
AudioTokenConfig parse_audio_detokenizer_config(std::string_view json, const std::string& origin);
VaeConfig parse_vae_config(std::string_view json, const std::string& origin);

/// The one config.json of an original checkpoint (huggingface/diffusers,
/// scripts/convert_ace_step_to_diffusers.py): the encoders have sizes of their own where it has
/// encoder_hidden_size and its like.
PartConfigs parse_original_config(std::string_view json, const std::string& origin);

/// Error(mismatch) where the parts do not fit each other: widths that one hands to the next.
void check_configs_agree(const PartConfigs& parts, const VaeConfig& vae, std::size_t text_width,
                         const std::string& origin);

}  // namespace assay::music
