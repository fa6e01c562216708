#include "lab/report/admission.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/path.hpp"
#include "base/sha256.hpp"
#include "lab/report/entries.hpp"
#include "lab/report/entry_reader.hpp"

namespace assay::lab {
namespace {

constexpr std::size_t kShortestPrefix = 7;
constexpr int kShortHash = 12;

std::string sha256_or_nothing(const std::filesystem::path& file) {
  try {
    return sha256_hex(file);
  } catch (const Error&) {
    return {};
  }
}

std::string short_key(const std::string& key) {
  return key.starts_with("synthetic ") ? key : fmt::format("{:.{}}", key, kShortHash);
}

/// What a person may call the model of this receipt; empty where it does not say.
std::string name_in(const Receipt& receipt) {
  JsonReader root = reader_of(receipt);
  auto subject = root.required<JsonReader>("subject");
  if (receipt.kind == ReceiptKind::gate || receipt.kind == ReceiptKind::bisect) {
    auto fixture = subject.optional<std::string>("fixture").value_or("");
    return fixture.substr(0, fixture.find('.'));
  }
  if (!subject.has("model")) return {};
  auto model = subject.required<JsonReader>("model");
  return model.optional<std::string>("name").value_or("");
}

class Admitter {
 public:
  Admitter(const KnownGates& gates, ReportScope scope) : gates_(gates) {
    result_.scope = std::move(scope);
    check_build();
  }

  void read(const std::filesystem::path& folder) {
    if (!is_directory_path(folder)) {
      throw Error(ErrorKind::missing, {.where = folder.string(), .found = "no folder of receipts"});
    }
    for (const auto& file : list_directory(folder)) {
      if (file.extension() == ".json") read_file(file);
    }
  }

  Admission finish() {
    std::stable_sort(receipts_.begin(), receipts_.end(), [](const Receipt& a, const Receipt& b) {
      return std::pair(a.body["made"].get<std::string>(), a.sha256) <
             std::pair(b.body["made"].get<std::string>(), b.sha256);
    });
    keep("device", [&](const Receipt& receipt) { return wrong_device(receipt); });
    complete_models();
    keep("model", [&](const Receipt& receipt) { return wrong_model(receipt); });
    keep("gate", [&](const Receipt& receipt) { return wrong_gate(receipt); });
    complete_build();
    keep("build", [&](const Receipt& receipt) { return wrong_build(receipt); });
    admit_entries();
    std::sort(result_.refused.begin(), result_.refused.end(),
              [](const RefusedFile& a, const RefusedFile& b) { return a.file < b.file; });
    return std::move(result_);
  }

 private:
  void refuse(const std::filesystem::path& file, std::string sha256, std::string cause, std::string reason) {
    result_.refused.push_back({.file = file.string(),
                               .sha256 = std::move(sha256),
                               .cause = std::move(cause),
                               .reason = std::move(reason)});
  }

  void read_file(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {
      return refuse(file, {}, "bytes", "no regular file");  // reading a pipe would wait for its writer
    }
    try {
      Receipt receipt = read_receipt(file);
      if (seen_.insert(receipt.sha256).second) receipts_.push_back(std::move(receipt));
    } catch (const Error& error) {
      refuse(file, sha256_or_nothing(file), "bytes", error.what());
    }
  }

  /// Takes out every receipt against which there is a reason, for that cause, or which cannot be read.
  template <class Reason>
  void keep(const char* cause, const Reason& reason_against) {
    std::vector<Receipt> kept;
    for (Receipt& receipt : receipts_) {
      try {
        std::string reason = reason_against(receipt);
        if (reason.empty()) {
          kept.push_back(std::move(receipt));
        } else {
          refuse(receipt.file, receipt.sha256, cause, std::move(reason));
        }
      } catch (const Error& error) {
        refuse(receipt.file, receipt.sha256, "contents", error.what());
      }
    }
    receipts_ = std::move(kept);
  }

  std::string wrong_device(const Receipt& receipt) const {
    JsonReader root = reader_of(receipt);
    auto device = root.required<JsonReader>("device");
    const auto id = device.required<std::string>("id");
    for (const char* field : {"processor", "features", "kernel"}) device.required<std::string>(field);
    for (const char* field : {"cores", "memory_bytes"}) device.required<std::uint64_t>(field);
    return id == result_.scope.device ? "" : fmt::format("of another device, {}", id);
  }

  std::string wrong_model(const Receipt& receipt) const {
    const std::set<std::string> about = models_of(receipt);
    const auto wanted = [&](const std::string& key) { return keys_.contains(key); };
    if (about.empty() || std::any_of(about.begin(), about.end(), wanted)) return {};
    if (receipt.kind == ReceiptKind::window && times_an_op(receipt)) return {};
    if (receipt.kind == ReceiptKind::sweep) return {};
    std::vector<std::string> names;
    std::transform(about.begin(), about.end(), std::back_inserter(names), short_key);
    return fmt::format("about another model, {}", fmt::join(names, ", "));
  }

  static bool times_an_op(const Receipt& receipt) {
    JsonReader root = reader_of(receipt);
    auto subject = root.required<JsonReader>("subject");
    auto items = subject.required<std::vector<JsonReader>>("items");
    return std::any_of(items.begin(), items.end(), [](const JsonReader& item) { return item.has("op"); });
  }

  std::string wrong_gate(const Receipt& receipt) const {
    if (receipt.kind != ReceiptKind::gate && receipt.kind != ReceiptKind::bisect) return {};
    JsonReader root = reader_of(receipt);
    auto subject = root.required<JsonReader>("subject");
    auto gate = subject.required<JsonReader>("gate");
    const auto name = gate.required<std::string>("name");
    const auto sha256 = gate.required<nlohmann::json>("sha256");
    if (sha256.is_null()) return fmt::format("by the gate {} that no file fixes", name);
    if (gates_.contains(gate.required<std::string>("sha256"))) return {};
    return fmt::format("by a gate {} whose file has changed since, or is none of those that stand", name);
  }

  void check_build() const {
    const std::string& build = result_.scope.build;
    const bool hexadecimal = build.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (build == "most" || build == "newest" || build == "any" ||
        (hexadecimal && build.size() >= kShortestPrefix))
      return;
    throw Error(
        ErrorKind::invalid_argument,
        {.where = "--build",
         .found = fmt::format("'{}'", build),
         .expected =
             "most, newest, any, or the first seven or more digits of a commit or a program's SHA-256"});
  }

  /// Which one "most" and "newest" are.
  void complete_build() {
    std::map<std::string, std::size_t> counts;
    std::size_t most = 0;
    for (const Receipt& receipt : receipts_) {
      const std::string build = build_or_nothing(receipt);
      if (build.empty()) continue;  // refused when builds are compared
      const std::size_t count = ++counts[build];
      if (result_.scope.build == "newest" || count >= most) build_ = build;
      most = std::max(most, count);
    }
  }

  static std::string build_or_nothing(const Receipt& receipt) {
    try {
      return build_of(receipt);
    } catch (const Error&) {
      return {};
    }
  }

  bool named_build() const { return result_.scope.build != "most" && result_.scope.build != "newest"; }

  std::string wrong_build(const Receipt& receipt) const {
    const std::string build = build_of(receipt);
    const std::string& wanted = result_.scope.build;
    if (wanted == "any") return {};
    if (!named_build()) {
      return build == build_ ? ""
                             : fmt::format("made by another build, {}; the report is of {}", build, build_);
    }
    JsonReader root = reader_of(receipt);
    auto program = root.required<JsonReader>("program");
    const bool fits =
        program.required<std::string>("sha256").starts_with(wanted) || build.starts_with("commit " + wanted);
    return fits ? "" : fmt::format("made by another build, {}", build);
  }

  void complete_models() {
    std::map<std::string, std::string> named;
    for (const Receipt& receipt : receipts_) {
      try {
        for (const std::string& key : models_of(receipt)) {
          const std::string name = name_in(receipt);
          if (named[key].empty() || !name.empty()) named[key] = name;
        }
      } catch (const Error&) {
        continue;  // refused when models are compared
      }
    }
    std::vector<ReportModel>& models = result_.scope.models;
    if (models.empty()) models.push_back({.key = only_model(named), .name = {}});
    for (ReportModel& model : models) {
      if (model.name.empty()) model.name = named[model.key];
      if (model.name.empty()) model.name = short_key(model.key);
      keys_.insert(model.key);
    }
  }

  std::string only_model(const std::map<std::string, std::string>& named) const {
    if (named.size() == 1) return named.begin()->first;
    std::vector<std::string> lines;
    for (const auto& [key, name] : named) {
      lines.push_back(name.empty() ? short_key(key) : fmt::format("{} ({})", name, short_key(key)));
    }
    throw Error(
        ErrorKind::invalid_argument,
        {.where = "--model",
         .found = named.empty() ? fmt::format("no receipt of {} about a model", result_.scope.device)
                                : fmt::format("receipts about {}", fmt::join(lines, ", ")),
         .expected = "one model",
         .advice = "name what the report is about with --model or --shape, and the device with --device"});
  }

  void admit_entries() {
    for (Receipt& receipt : receipts_) {
      try {
        // What a selection would trip over is refused here.
        if (receipt.kind == ReceiptKind::window) {
          read_selection_findings({receipt}, gates_, result_.scope.device);
        }
        nlohmann::ordered_json entry = entry_of(receipt, keys_);
        result_.machine = receipt.body["device"];
        result_.admitted.push_back({std::move(receipt), std::move(entry)});
      } catch (const Error& error) {
        refuse(receipt.file, receipt.sha256, "contents", error.what());
      }
    }
    if (!named_build() && !build_.empty()) result_.scope.build = build_;
  }

  const KnownGates& gates_;
  Admission result_;
  std::vector<Receipt> receipts_;
  std::set<std::string> seen_;
  std::set<std::string> keys_;
  std::string build_;
};

}  // namespace

Admission admit(const std::vector<std::filesystem::path>& folders, const KnownGates& gates,
                ReportScope scope) {
  Admitter admitter(gates, std::move(scope));
  for (const auto& folder : folders) admitter.read(folder);
  return admitter.finish();
}

}  // namespace assay::lab
