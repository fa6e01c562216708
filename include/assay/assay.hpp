#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// Assay's public interface: open a decision model, ask it System One requests.
///
///     assay::api::DecisionModel model("runs/kev-4b");
///     std::string response = model.decide(R"({"state": "…", "questions": {…}})");
///
/// Everything here may be used from several threads at once. Failures are exceptions derived from
/// std::exception; those about a request, a file or a flag are assay::Error (base/error.hpp), whose text
/// names the place, what was found and what to do.
namespace assay::api {

/// How a model is run.
struct DecisionOptions {
  /// The base model's directory, where the run's own reference to it is not to be followed.
  std::optional<std::filesystem::path> base = std::nullopt;
  /// fp32 throughout instead of bf16 matrix products with fp32 sums: the exact path.
  bool exact = false;
  /// Threads to use; 0 is one a core. Answers do not depend on it.
  std::size_t threads = 0;
  /// Bytes of states kept for requests about the same state; 0 keeps none. Answers do not depend on it.
  std::size_t state_cache_bytes = 0;
  /// Op name to the form that is to run it, instead of this device's selection or the default (`assay
  /// forms`).
  std::map<std::string, std::string, std::less<>> forms = {};
  /// Called while the model loads, with layers done and in all.
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;
};

/// A decision model in memory. Movable; the object it was moved from may only be assigned to or destroyed.
class DecisionModel {
 public:
  /// Opens a Kev run directory, or a GGUF file of such a model, and packs its weights.
  explicit DecisionModel(const std::filesystem::path& run_or_gguf, const DecisionOptions& options = {});
  ~DecisionModel();
  DecisionModel(DecisionModel&&) noexcept;
  DecisionModel& operator=(DecisionModel&&) noexcept;

  /// A System One request body to its response body, both JSON in UTF-8: {"model", "answers", "usage",
  /// "latency_ms"}. Calls from several threads are answered one after another.
  std::string decide(std::string_view request_json);

  /// SHA-256 over the names, sizes and contents of the model's files. The first call reads them: seconds for
  /// gigabytes. Throws where one was changed since the model was loaded.
  std::string identity() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::api
