#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
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

/// A file that an oracle script wrote: {"model", "temperature", "records": [{"id", "request", "rows":
/// [{"question", "type", "state_ids" (null from the second row on), "branch_ids", "option_ends", "logits",
/// "probabilities"}]}]}.
struct DecisionFixture {
  std::string file;
  std::string sha256;
  std::string model;
  double temperature = 1;
  std::vector<FixtureRecord> records;

  std::size_t rows() const;
};

/// Reads and checks a fixture: fields and types, rows against the request's questions, lengths against each
/// other. Throws Error(malformed | invalid_argument) naming file and field; an unknown field is an error, for
/// a gate must not pass over what it does not understand.
DecisionFixture read_decision_fixture(const std::filesystem::path& path);

/// The same from text already read.
DecisionFixture parse_decision_fixture(std::string_view json, const std::string& file);

}  // namespace assay::lab
