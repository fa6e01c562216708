#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "backbone/backbone.hpp"
#include "ops/selection.hpp"

namespace assay::lab {

/// What `assay bench decision` measures.
///
/// A case of R tokens and Q questions is one pass over a state of R − 32 tokens and Q questions of 32 tokens
/// each that see the state and themselves: R + 32·(Q − 1) tokens in all, so R with one question is one row of
/// R tokens. Each question reads out its last token and four options. Token ids are arbitrary, weights
/// synthetic (lab/synthetic_weights.hpp): the time of a pass does not depend on them.
struct DecisionBenchOptions {
  std::string shape = "kev-0.8b";
  std::vector<std::size_t> rows = {94, 380, 1518};  ///< R, each over 32, at most 8192
  std::vector<std::size_t> questions = {1, 6};      ///< Q, each 1 to 255
  std::size_t repeat = 5;                           ///< timed passes a case, after one that is not
  std::size_t threads = 0;                          ///< 0: one per core
  ops::Precision precision = ops::Precision::bf16;
  ops::FormOverrides forms;
};

/// Floating-point operations of a pass by the mathematics of the ops, whatever a form really does: 2·m·n·k of
/// every product; 4·heads·head_dim of every visible query-key pair (q·k and p·v); 7·key_dim·value_dim of
/// every value head and token of the gated delta rule (decay, Sᵀk, rank-one update, Sᵀq); 2·width of every
/// channel and token of the convolution. Norms, activations and the embedding are left out.
struct OperationCount {
  double matmul = 0;
  double attention = 0;
  double gated_delta_rule = 0;
  double causal_conv1d = 0;
  double total() const { return matmul + attention + gated_delta_rule + causal_conv1d; }
};
OperationCount count_operations(const formats::ModelConfig& config, std::size_t state_tokens,
                                std::size_t question_tokens, std::size_t questions);

struct DecisionBenchCase {
  std::size_t row_tokens = 0;
  std::size_t questions = 0;
  std::size_t total_tokens = 0;
  std::vector<double> seconds;  ///< of each timed pass, in the order run
  OperationCount operations;    ///< of one pass
  backbone::OpTimes op_times;   ///< summed over the timed passes
};

struct DecisionBenchReport {
  DecisionBenchOptions options;
  std::string cpu;
  std::string selection;  ///< the forms that ran
  std::size_t threads = 0;
  std::size_t parameters = 0;    ///< of the backbone, the embedding table included
  std::size_t weight_bytes = 0;  ///< as held: packed products and the table
  std::size_t peak_bytes = 0;    ///< the process's peak resident memory (VmHWM), loading included
  double load_seconds = 0;       ///< generating and packing
  std::vector<DecisionBenchCase> cases;
};

/// Loads once, warms every case up, then runs the cases in turn, forwards and backwards by turns so that a
/// drift of the machine falls on all alike. `progress` gets a line now and then.
/// Throws Error(invalid_argument) for an unknown shape or a number out of its range.
DecisionBenchReport bench_decision(const DecisionBenchOptions& options,
                                   const std::function<void(std::string_view)>& progress);

/// A bench receipt. subject: {"bench": "decision", "model": {"shape", "seed"}, "precision", "threads",
/// "forms", "repeat"}; result: what to_json gives.
nlohmann::ordered_json bench_subject(const DecisionBenchReport& report);
nlohmann::ordered_json to_json(const DecisionBenchReport& report);
std::string to_table(const DecisionBenchReport& report);

}  // namespace assay::lab
