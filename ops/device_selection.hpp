#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/selection.hpp"

namespace assay::ops {

/// A form that a device's receipts speak for, or against, with the reason in one sentence.
struct JudgedForm {
  std::string op;
  Precision precision = Precision::fp32;  ///< of the run
  std::string form;
  std::string why;
};

/// Which forms production uses on one device: data that the lab makes from receipts (`assay lab select`).
///
///     {"schema": "assay.selection/1", "device": "cpu-…", "made": "2026-01-31T12:00:00Z",
///      "choices": [{"op", "precision", "form", "why", "receipts": [SHA-256, …]}],
///      "refused": [{"op", "precision", "form", "why", "receipts": […]}]}
///
/// A form serves every shape of a run, for an answer's bits must not depend on what else is in the batch.
struct DeviceSelection {
  std::string file;  ///< as read
  std::string device;
  std::vector<JudgedForm> choices;
  std::vector<JudgedForm> refused;

  /// `wanted`, and for the ops that it leaves open the choices at that precision.
  FormOverrides complete(FormOverrides wanted, Precision precision) const;

  /// What is said of a form, or null.
  const JudgedForm* choice(std::string_view op, std::string_view form, Precision precision) const;
  const JudgedForm* refusal(std::string_view op, std::string_view form, Precision precision) const;
};

/// Throws Error(missing | io), Error(malformed) naming file and field for what is not as said above,
/// Error(mismatch) for a selection of another device, or one that names a form that this program lacks or
/// this machine cannot run.
DeviceSelection read_device_selection(const std::filesystem::path& file);

/// This device's selection: the file that the environment's ASSAY_SELECTION names ("off": none), else
/// assay/selection/<device>.json under $XDG_CONFIG_HOME or ~/.config, where there is one.
std::optional<std::filesystem::path> find_device_selection();

/// `wanted` completed by this device's selection, or as it is where there is none. Throws what reading
/// throws.
FormOverrides with_device_selection(FormOverrides wanted, Precision precision);

}  // namespace assay::ops
