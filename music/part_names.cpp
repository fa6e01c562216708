#include "music/part_names.hpp"

#include <array>
#include <utility>

namespace assay::music {
namespace {

struct PartWords {
  std::string_view folder;
  std::string_view prefix;  ///< in the original file; empty where the part is not in it
};

constexpr std::array<PartWords, 6> kParts = {{{"text_encoder", ""},
                                              {"condition_encoder", "encoder."},
                                              {"transformer", "decoder."},
                                              {"audio_tokenizer", "tokenizer."},
                                              {"audio_token_detokenizer", "detokenizer."},
                                              {"vae", ""}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kRenamed = {
    {{".q_proj.", ".to_q."},
     {".k_proj.", ".to_k."},
     {".v_proj.", ".to_v."},
     {".o_proj.", ".to_out.0."},
     {".q_norm.", ".norm_q."},
     {".k_norm.", ".norm_k."},
     // Of a Sequential whose other members have no weights.
     {"proj_in.1.", "proj_in_conv."},
     {"proj_out.1.", "proj_out_conv."}}};

const PartWords& words_of_part(Part part) {
  return kParts[static_cast<std::size_t>(part)];
}

}  // namespace

std::string_view folder_of(Part part) {
  return words_of_part(part).folder;
}

std::optional<std::string> part_name(Part part, std::string_view original) {
  constexpr std::string_view kNullCondition = "null_condition_emb";
  if (original == kNullCondition && part == Part::condition_encoder) return std::string(original);
  const std::string_view prefix = words_of_part(part).prefix;
  if (prefix.empty() || !original.starts_with(prefix)) return std::nullopt;
  std::string name(original.substr(prefix.size()));
  for (const auto& [old_words, new_words] : kRenamed) {
    for (std::size_t at = name.find(old_words); at != std::string::npos; at = name.find(old_words, at)) {
      name.replace(at, old_words.size(), new_words);
    }
  }
  return name;
}

}  // namespace assay::music
