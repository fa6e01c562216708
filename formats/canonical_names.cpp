#include "formats/canonical_names.hpp"

#include <array>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace assay::formats {
namespace {

bool strip(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

class RenamedSource final : public TensorSource {
 public:
  RenamedSource(std::shared_ptr<const TensorSource> source, const TensorNames& names)
      : source_(std::move(source)) {
    for (const std::string& name : source_->names()) add(name, names(name));
  }

  const TensorInfo* find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.info;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    all.reserve(tensors_.size());
    for (const auto& [name, tensor] : tensors_) all.push_back(name);
    return all;
  }

  void read_rows(std::string_view name, std::uint64_t first, std::uint64_t count,
                 std::span<float> out) const override {
    require(*this, name);
    source_->read_rows(tensors_.find(name)->second.original, first, count, out);
  }

  std::span<const std::byte> stored_bytes(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? std::span<const std::byte>{}
                                   : source_->stored_bytes(found->second.original);
  }

  void release(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) source_->release(found->second.original);
  }

 private:
  struct Renamed {
    std::string original;
    TensorInfo info;
  };

  void add(const std::string& original, const std::optional<std::string>& name) {
    if (!name) return;
    TensorInfo info = require(*source_, original);
    info.name = *name;
    const auto [place, added] = tensors_.emplace(*name, Renamed{original, std::move(info)});
    if (added) return;
    throw Error(ErrorKind::malformed, {.where = place->second.info.origin,
                                       .found = "'" + place->second.original + "' and '" + original + "'",
                                       .expected = "one tensor for '" + *name + "'"});
  }

  std::shared_ptr<const TensorSource> source_;
  std::map<std::string, Renamed, std::less<>> tensors_;
};

}  // namespace

std::optional<std::string> canonical_name(std::string_view name) {
  // transformers' Qwen3_5ForConditionalGeneration keeps the text model at model.language_model and the vision
  // tower at model.visual; a text-only save has model.; a bare backbone has no prefix.
  strip(name, "model.");
  if (strip(name, "language_model.")) strip(name, "model.");
  static constexpr std::array<std::string_view, 5> kElsewhere = {"visual.", "vision_tower.", "vision_model.",
                                                                 "mtp.", "lm_head."};
  for (std::string_view prefix : kElsewhere) {
    if (name.starts_with(prefix)) return std::nullopt;
  }
  return std::string(name);
}

std::shared_ptr<const TensorSource> renamed_tensors(std::shared_ptr<const TensorSource> source,
                                                    const TensorNames& names) {
  return std::make_shared<RenamedSource>(std::move(source), names);
}

std::shared_ptr<const TensorSource> canonical_names(std::shared_ptr<const TensorSource> source) {
  return renamed_tensors(std::move(source), canonical_name);
}

}  // namespace assay::formats
