#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/receipt/receipt.hpp"
#include "lab/selection/findings.hpp"

/// Which receipts a report may use: those that are as they were written, of its device, its models and its
/// build, by a gate that still stands. Every other one is named with the reason.
namespace assay::lab {

/// A model that a report is about.
struct ReportModel {
  std::string key;   ///< as receipts name it: a checkpoint's identity, or "synthetic <shape>"
  std::string name;  ///< for people; where empty, what the receipts call it
};

struct ReportScope {
  std::string device;               ///< the receipts' device id
  std::vector<ReportModel> models;  ///< where empty, the one model that the device's receipts are about
  /// "most": the build that made most of the receipts that are else admitted, of equals the newest; "newest":
  /// the build of the newest one; "any"; or the beginning (seven
  /// hexadecimal digits or more) of a commit, of which modified trees are none, or of a program's SHA-256.
  std::string build = "most";
};

struct RefusedFile {
  std::string file;
  std::string sha256;  ///< of its bytes, whatever its name says; empty where they cannot be read
  std::string cause;   ///< "bytes", "contents", "device", "model", "gate", "build"
  std::string reason;
};

struct AdmittedReceipt {
  Receipt receipt;
  nlohmann::ordered_json entry;  ///< entry_of
};

struct Admission {
  ReportScope scope;               ///< completed: models with names, the build that was admitted or "any"
  nlohmann::ordered_json machine;  ///< the newest admitted receipt's device; null without any
  std::vector<AdmittedReceipt> admitted;  ///< oldest first, each once
  std::vector<RefusedFile> refused;       ///< by file
};

/// Throws Error(missing) for a folder that is not there, Error(invalid_argument) for a build that is not as
/// said above, and where no model is named and the receipts are about several, or none.
Admission admit(const std::vector<std::filesystem::path>& folders, const KnownGates& gates,
                ReportScope scope);

}  // namespace assay::lab
