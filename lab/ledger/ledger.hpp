#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/ledger/rule.hpp"
#include "lab/receipt/receipt.hpp"

namespace assay::lab {

enum class ExperimentState { proposed, frozen, recorded, decided };

std::string_view to_string(ExperimentState state);

/// One entry of the ledger: a document that meets ledger/schema/experiment.schema.json.
class Experiment {
 public:
  using Json = nlohmann::ordered_json;

  /// Throws Error(malformed) naming file and field where the document does not meet the schema, or its rule
  /// contradicts itself.
  Experiment(std::filesystem::path file, Json body);

  const std::filesystem::path& file() const noexcept { return file_; }
  const Json& body() const noexcept { return body_; }

  std::string id() const { return body_["id"].get<std::string>(); }
  ExperimentState state() const;
  std::string text(const char* field) const { return body_["proposal"][field].get<std::string>(); }
  std::string subsystem() const;  ///< the subject up to its colon
  std::optional<std::string> supersedes() const;
  std::optional<std::string> superseded_by() const;

  /// What follows needs the state that it names: frozen …
  Rule rule() const;
  std::vector<std::string> gate_sha256s() const;
  std::string frozen_sha256() const;  ///< as recorded
  std::string computed_frozen_sha256() const;
  /// Why a receipt is no evidence for this experiment; empty where it is.
  std::string refusal_of(const Receipt& receipt) const;
  /// … recorded …
  std::vector<std::string> receipt_sha256s() const;
  /// … decided.
  std::string evidence() const;
  std::string disposition() const;

 private:
  std::filesystem::path file_;
  Json body_;
};

/// Parses and checks an experiment's file. Throws Error(missing | io | malformed | mismatch), the last where
/// its name does not begin with its ID.
Experiment read_experiment(const std::filesystem::path& file);

struct Proposal {
  std::string subject;  ///< "subsystem" or "subsystem: what in it"
  std::string hypothesis;
  std::string mechanism;
  std::string risk;                  ///< exact, reordered or approximate
  std::vector<std::string> sources;  ///< paths of the subject's code, as seen from the working directory
  std::string slug;                  ///< of the file's name; made from the subject where empty
  std::string supersedes;            ///< ID, or empty
};

struct Freezing {
  std::vector<std::filesystem::path> gates;
  std::filesystem::path window;  ///< plan; empty for none
  std::string device;            ///< receipts' device id; empty for any
  nlohmann::ordered_json rule;   ///< "assay.rule/1"
};

struct Disposition {
  std::string disposition;
  std::string reason;
  std::string by;  ///< for superseded: the ID; else empty
};

/// The ledger in a folder:
///
///     experiments/EXP-0001-<slug>.json     one a hypothesis, proposed → frozen → recorded → decided
///     receipts/<sha256>.json               what was measured
///     frozen/<sha256>.json                 gates and window plans as they were frozen
///     imported/<name>.json                 records kept elsewhere before
///     schema/experiment.schema.json
///
/// Every change holds the folder's lock (flock; it goes with the process), reads the files again, and writes
/// one file atomically: a killed or failed command leaves what stood there. Commands of two processes are one
/// after the other.
class Ledger {
 public:
  explicit Ledger(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const noexcept { return folder_; }
  std::filesystem::path experiments() const { return folder_ / "experiments"; }
  std::filesystem::path receipts() const { return folder_ / "receipts"; }
  std::filesystem::path frozen() const { return folder_ / "frozen"; }
  std::filesystem::path imported() const { return folder_ / "imported"; }

  /// The experiments' files, by name; temporaries that a killed command left are none.
  std::vector<std::filesystem::path> files() const;

  /// All experiments by ID. Throws what `read_experiment` throws, Error(mismatch) for an ID twice.
  std::vector<Experiment> read() const;

  /// Throws Error(missing) where there is no such ID.
  Experiment read(const std::string& id) const;

  /// Attached receipts of an experiment, read and checked. Throws what `read_receipt` throws.
  std::vector<Receipt> receipts_of(const Experiment& experiment) const;

  /// Allocates the next ID: one more than the last; never one that any commit knew. Makes the folder where
  /// there is none. Throws Error(mismatch) where IDs have gaps or one was removed, Error(invalid_argument)
  /// naming the flag, Error(missing) where `supersedes` or a source is not there.
  Experiment propose(const Proposal& proposal);

  /// Fixes what the experiment is to be judged by, with the commit that it starts from. Copies gates and
  /// plan into the ledger. Throws Error(mismatch) for another state than proposed, Error(unsupported) outside
  /// a git repository or before its first commit, Error(mismatch) where files under the subject's sources
  /// (without sources: anywhere outside the ledger) are modified or untracked, Error(invalid_argument) for a
  /// rule that reads gates or a window that are not given, or does not read those given.
  Experiment freeze(const std::string& id, const Freezing& freezing);

  /// Attaches receipts, all or none. Throws Error(mismatch) for an experiment that is not frozen or already
  /// decided and for a receipt that `Experiment::refusal_of` refuses, what `read_receipt` throws for an
  /// edited one.
  Experiment record(const std::string& id, const std::vector<std::filesystem::path>& receipts);

  /// Computes the evidence by the frozen rule and sets the disposition. A decided experiment keeps its
  /// evidence; its disposition may follow from pending-integration, or become superseded. Throws
  /// Error(mismatch) for another state, for integrated without positive evidence, and for superseded without
  /// a successor.
  Experiment decide(const std::string& id, const Disposition& disposition);

 private:
  std::vector<Experiment> read_sound() const;
  void complete_links(const std::vector<Experiment>& experiments) const;
  void write(const Experiment& experiment) const;

  std::filesystem::path folder_;
};

/// "2026-01-31T12:00:00Z", now.
std::string utc_now();

/// The number of "EXP-0012".
std::size_t number_of(const std::string& id);

/// Whether a decided experiment may get another disposition, as work goes on after the evidence.
bool disposition_may_follow(const std::string& before, const std::string& after);

/// The clauses' outcomes as `decision.findings` has them.
nlohmann::ordered_json findings_json(const Judgement& judgement);

/// The evidence of an experiment's receipts under its frozen rule.
Judgement judge(const Experiment& experiment, const std::vector<Receipt>& receipts);

}  // namespace assay::lab
