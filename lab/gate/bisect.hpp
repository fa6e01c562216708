#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/gate/execute.hpp"
#include "ops/selection.hpp"

/// Where a form fails a gate, the parts of the model that carry the damage: the form runs in some parts, the
/// reference everywhere else, and the gate judges each such run.
namespace assay::lab {

/// Whether a run with the suspect form in these groups (indices, rising) fails.
using FailsWith = std::function<bool(const std::vector<std::size_t>& groups)>;

/// A set of groups that fails while it does not when any one of them is left out: smallest in that sense, not
/// necessarily the smallest of all. `groups` as a whole fails. By halving, then by ever finer pieces and
/// their complements, so that damage that only several groups together carry is found too (A. Zeller, R.
/// Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering
/// 28(2), 2002, algorithm ddmin). About 2·log₂(groups) runs for one culprit, quadratic at worst.
std::vector<std::size_t> smallest_failing(const std::vector<std::size_t>& groups, const FailsWith& fails);

/// Every such set: one is found and taken out until what remains passes.
std::vector<std::vector<std::size_t>> all_failing(std::size_t groups, const FailsWith& fails);

/// One run of the gate.
struct BisectTrial {
  std::vector<std::string> groups;  ///< where the suspect form ran
  bool pass = false;
  std::vector<std::pair<std::string, std::string>> columns;  ///< see Verdict
};

struct BisectReport {
  std::string gate;
  std::string gate_sha256;
  nlohmann::ordered_json subject;  ///< of the run with the suspect form everywhere
  std::string suspect;             ///< "op=name …"
  std::string elsewhere;           ///< likewise
  BisectTrial everywhere;          ///< the suspect forms in every part that they can run in
  BisectTrial nowhere;
  std::vector<std::vector<std::string>> layers;  ///< sets of layers, each of which fails by itself
  std::vector<std::vector<std::string>> parts;   ///< the same within those layers, by tensor set
  std::vector<BisectTrial> trials;               ///< every run, in order
};

/// What a bisection works on: the parts of the layers that run the op, and how to judge a run.
struct BisectProblem {
  struct Part {
    std::size_t layer;
    std::string name;  ///< "layer 3 mlp.down"
  };
  std::vector<Part> parts;
  /// Runs with the suspect form in these parts (indices, rising).
  std::function<BisectTrial(const std::vector<std::size_t>& parts)> run;
};

/// Halves over layers, then over the parts of the layers found. Fills everything of the report but what says
/// what was run. Throws Error(invalid_argument) where the suspect passes everywhere (there is nothing to
/// find), where the gate fails without it too, and where no part runs the op.
BisectReport bisect(const BisectProblem& problem);

/// Bisects the forms of `target.forms` by the gate's verdict on a decision or taps subject; the gate needs
/// one fixture. Elsewhere the reference forms of those ops run, or what `elsewhere` names; elsewhere of a
/// matmul form the run is at fp32. Red arms are left out: they say nothing of a form. Throws what
/// execute_gate and bisect throw.
BisectReport bisect_forms(const GateFile& gate, const GateTarget& target, const ops::FormOverrides& elsewhere,
                          const std::function<void(const BisectTrial&)>& progress = nullptr);

/// The same for any selections, which `target.forms` then do not name: the tests' own faulty forms.
BisectReport bisect_selection(const GateFile& gate, const GateTarget& target, const ops::Selection& suspect,
                              const std::vector<std::string>& ops,
                              const std::function<void(const BisectTrial&)>& progress = nullptr);

/// Receipt fields, subject: the run's, "gate", "suspect", "elsewhere"; result: "everywhere", "nowhere",
/// "layers", "parts" (lists of sets), "trials".
nlohmann::ordered_json receipt_subject(const BisectReport& report);
nlohmann::ordered_json receipt_result(const BisectReport& report);
std::string to_text(const BisectReport& report);

}  // namespace assay::lab
