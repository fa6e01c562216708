#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::lab {

/// What a receipt is about. The text in a file is the name in lower case with a hyphen.
enum class ReceiptKind {
  gate,
  sweep,
  bisect,
  window,
  call_cost,
  footprint,
  growth,
  profile,
  ceilings,
  bench
};

std::string_view to_string(ReceiptKind kind);

/// The JSON that a gate or a measurement writes, named by the SHA-256 of its bytes:
///
///     {"schema": "assay.receipt/1", "kind": "gate", "made": "2026-01-31T12:00:00Z",
///      "program": {"version", "commit", "modified", "build", "sha256" (of the executable)},
///      "device": {"id", "processor", "features", "cores", "memory_bytes", "kernel"},
///      "subject": {…}, "result": {…}}
///
/// `subject` says what was run (model identity, forms, precision, plan or gate by SHA-256), `result` what
/// came of it; both belong to the kind.
struct Receipt {
  std::string sha256;          ///< of the file's bytes
  std::filesystem::path file;  ///< where it lies
  ReceiptKind kind = ReceiptKind::gate;
  nlohmann::ordered_json body;  ///< the whole document
};

/// A new document of this kind, made now by this program on this machine. Throws Error(non_finite) where a
/// number in it is none that JSON has.
nlohmann::ordered_json make_receipt(ReceiptKind kind, nlohmann::ordered_json subject,
                                    nlohmann::ordered_json result);

/// Makes the folder where it is missing, writes a file into it and takes it away again, so that hours of
/// measuring are not started for a receipt that could never be written. Throws Error(io | missing) naming the
/// folder.
void check_receipt_folder(const std::filesystem::path& folder);

/// Writes a document as `folder`/<sha256>.json, atomically; the folder is made where it is missing. The same
/// bytes twice are one file.
Receipt write_receipt(const std::filesystem::path& folder, nlohmann::ordered_json body);

/// Reads a receipt and checks it: its name is the SHA-256 of its bytes, its fields are there and no others.
/// Throws Error(mismatch) for a receipt whose bytes are not those it was named by, Error(malformed) naming
/// the field or the byte, also for a field that occurs twice and for absurd nesting, Error(missing).
Receipt read_receipt(const std::filesystem::path& file);

/// Every receipt of a folder, oldest first, then by name. Throws what `read_receipt` throws; a folder that is
/// not there holds none.
std::vector<Receipt> read_receipts(const std::filesystem::path& folder);

}  // namespace assay::lab
