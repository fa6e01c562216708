#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decision/request.hpp"

namespace assay::lab {

/// An oracle's recorded answers to one question.
struct FixtureRow {
  std::string question;  ///< its id
  std::vector<std::int32_t> branch_ids;
  std::vector<std::size_t> option_ends;
  std::vector<double> logits;  ///< temperature applied
  std::vector<double> probabilities;
};

struct FixtureRecord {
  std::string id;
  decision::Request request;
  std::vector<std::int32_t> state_ids;
  std::vector<FixtureRow> rows;  ///< one a question, in the request's order
};

/// Which checkpoint an oracle ran, by what no layout of its files changes (oracle/kev_files.py, `identity`).
struct CheckpointFacts {
  std::string family;  ///< "qwen3" or "qwen3_5"
  std::uint64_t layers = 0;
  std::uint64_t hidden_size = 0;
  std::uint64_t vocabulary = 0;
  std::string head_sha256;  ///< of the pointer head's biases, q's then k's, as little-endian fp32

  bool operator==(const CheckpointFacts&) const = default;
};

/// A file that an oracle script wrote: {"model", "temperature", "checkpoint" (may be absent): {"family",
/// "layers", "hidden_size", "vocabulary", "head_sha256"}, "records": [{"id", "request", "rows": [{"question",
/// "type", "state_ids" (null from the second row on), "branch_ids", "option_ends", "logits",
/// "probabilities"}]}]}.
struct DecisionFixture {
  std::string file;
  std::string sha256;
  std::string model;
  double temperature = 1;
  std::optional<CheckpointFacts> checkpoint;
  std::vector<FixtureRecord> records;

  std::size_t rows() const;
};

/// Reads and checks a fixture: fields and types, rows against the request's questions, lengths against each
/// other, probabilities against their logits (softmax) and their sum. Throws Error(malformed |
/// invalid_argument) naming file and field; a field that is unknown or comes twice is an error, for a gate
/// must not pass over what it does not understand.
DecisionFixture read_decision_fixture(const std::filesystem::path& path);

/// The same from text already read.
DecisionFixture parse_decision_fixture(std::string_view json, const std::string& file);

}  // namespace assay::lab
