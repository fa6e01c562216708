#pragma once

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "lab/receipt/receipt.hpp"

/// What a report takes of a receipt: its fields read one by one, so that one which lacks a field, or says two
/// things that contradict each other, is refused and not half shown.
namespace assay::lab {

/// The models that a receipt is about: the identity of a checkpoint, "synthetic <shape>" for synthetic
/// weights. None for an op alone and for what a machine can do, which are of any model.
/// Throws Error(malformed) naming receipt and field.
std::set<std::string> models_of(const Receipt& receipt);

/// The receipt as a report has it; every entry begins {"receipt", "kind", "made", "build"}, and what follows
/// is, by kind (times in milliseconds, sizes in bytes):
///
///  gate       {"gate", "gate_sha256", "type", "op", "model", "fixture", "fixture_sha256", "precision",
///             "forms", "comparator", "thresholds", "cases", "measures", "failures", "run", "red_arms":
///             [{"arm", "outcome", "cases_changed", "measures"}], "result"}
///  sweep      {"rows": [{"gate", "fixture", "precision", "form", "result", "reason"?, "receipt"?}]}, those
///             of these models and of ops
///  bisect     {"gate", "gate_sha256", "model", "fixture", "precision", "suspect", "elsewhere", "everywhere",
///             "nowhere": {"result", "measures"}, "layers", "parts", "runs"}
///  window     {"id", "plan", "plan_sha256", "device", "started", "seconds", "clean", "contention", "order",
///             "rule", "limits", "ceilings", "dropped_samples", "items": [{"item", "what", "model"}],
///             "left_out_items", "forms": [{"form", "precision", "forms", "threads", "call_tokens",
///             "resident_bytes"}], "times": [{"item", "form", "median", "p10", "p90", "spread", "count",
///             "floor", "suspicious"}], "pairs": [{"item", "baseline", "candidate", "pairs", "wins",
///             "losses", "ratio", "interval", "verdict", "suspicious", "why"}], "surroundings": {"cores",
///             "load_before", "other_cpu", "steal", "available_memory", "other_processes"}, "samples":
///             [{"item", "form", "start" (seconds), "wall"}]}; items of other models are left out
///  call-cost  {"model", "precision", "threads", "rounds", "curves": [{"label", "forms", "fit", "points":
///             [{"tokens", "median", "p10", "p90", "min", "max"}]}]}
///  footprint  {"model", "precision", "threads", "forms", "tokens", "calls", "stages", "peak", "devices"}
///  growth     {"model", "precision", "threads", "forms", "verdict", "slope_bytes_per_call", "interval",
///             "threshold_bytes_per_call", "total_bytes", "steps", "calls", "distinct_lengths", "shortest",
///             "longest", "before_bytes", "trimmed_bytes", "block_calls", "block_medians_bytes", "held":
///             {"call", "bytes"} (at most 600 of the samples)}
///  profile    {"model", "precision", "threads", "forms", "passes", "what", "ceilings", "wall",
///             "unaccounted", "lines"}
///  ceilings   {"threads", "caches", "peaks", "bandwidths"}
///  bench      {"model", "precision", "threads", "forms", "repeat", "parameters", "weight_bytes",
///             "peak_bytes", "load_seconds", "cases": [{"row_tokens", "questions", "total_tokens", "median",
///             "min", "max", "tokens_per_second", "tflops", "ops"}]}
///
/// Throws Error(malformed) naming receipt and field, Error(mismatch) where its parts contradict each other: a
/// PASS with a red arm that is not RED or without one, a window clean with reasons to be contended.
nlohmann::ordered_json entry_of(const Receipt& receipt, const std::set<std::string>& models);

/// The build that made a receipt, as one text: two receipts are of one build where these are equal. A commit
/// and the compiler where the tree was as committed, else the program's SHA-256.
std::string build_of(const Receipt& receipt);

}  // namespace assay::lab
