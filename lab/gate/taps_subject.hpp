#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backbone/backbone.hpp"
#include "decision/checkpoint.hpp"
#include "device/thread_pool.hpp"
#include "lab/gate/subject.hpp"

namespace assay::lab {

/// What an oracle recorded of one row's way through the layers: "ids" (i64 [tokens]), "hidden_00" (the
/// embeddings) to "hidden_NN" (the outputs of the layers but the last) and "final_norm", each [tokens,
/// hidden] (oracle/kev_oracle.py).
struct TapsFixture {
  std::string file;
  std::string sha256;
  std::vector<std::int32_t> ids;
  std::shared_ptr<const formats::TensorSource> tensors;
};

/// Throws Error(missing | malformed | mismatch) naming file and tensor.
TapsFixture read_taps(const std::filesystem::path& path);

/// A backbone's layer outputs against the taps: one case, an array a tap. It has no input arms.
class TapsSubject final : public Subject {
 public:
  /// `taps` must outlive this. Throws Error(mismatch) for taps of another model: ids past the vocabulary,
  /// another width, other layers.
  TapsSubject(decision::Checkpoint checkpoint, const TapsFixture& taps, const ops::Selection& selection,
              ops::Precision precision, const backbone::PartForms& parts = nullptr);

  nlohmann::ordered_json describe() const override;
  std::size_t cases() const override { return 1; }
  std::string case_name(std::size_t index) const override;
  Answer expected(std::size_t index) override;
  Answer run(std::size_t index) override;
  std::optional<Answer> run_changed(std::size_t index, std::string_view arm) override;

 private:
  const TapsFixture& taps_;
  std::string identity_;
  ops::Precision precision_;
  device::ThreadPool threads_;
  std::unique_ptr<backbone::Backbone> backbone_;
};

}  // namespace assay::lab
