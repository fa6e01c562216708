#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/gate/comparators.hpp"
#include "lab/gate/red_arms.hpp"
#include "ops/form.hpp"

namespace assay::lab {

/// What a gate runs.
enum class SubjectKind { decision, op, taps, music };

std::string_view to_string(SubjectKind kind);

/// A file of an oracle's answers. A pinned one is refused when its bytes have another SHA-256.
struct FixtureReference {
  std::filesystem::path path;
  std::string sha256;  ///< empty: any bytes
};

/// A gate, frozen as a file:
///
///     {"schema": "assay.gate/1", "name": "decision-fp32",
///      "subject": {"type": "decision", "precision": "fp32"},
///      "fixtures": [{"path": "kev.fixture.json", "sha256": "…"}],
///      "comparator": "decisions",
///      "thresholds": {"near_tie_margin": 0.02, "max_abs_dp": 1e-4, "mean_of_row_mean_abs_dp": 0.002},
///      "red_arms": [{"arm": "negated_instructions"}, {"arm": "swapped_states"}]}
///
/// subject.type "decision": the answers of a decision model to a fixture's requests. "taps": the outputs of a
/// model's layers against those an oracle tapped. "op": a form against its contract in double precision, over
/// shapes, edges and extreme values drawn from "seed"; its fields are "op" and "seed". "music": the stages of
/// a music model's songs, judged by the audio comparator.
/// "precision" may be left out of a subject: then the gate judges runs of either. "fixtures" may be left out
/// of decision, taps and music gates, which then take theirs from the command; paths are relative to the
/// gate's file. A gate is known by the SHA-256 of its file.
struct GateFile {
  std::string file;    ///< its path as given; empty for a gate that the program made itself
  std::string sha256;  ///< empty where the program made it
  std::string name;
  SubjectKind subject = SubjectKind::decision;
  std::optional<ops::Precision> precision;
  std::string op;          ///< of an op gate
  std::uint64_t seed = 0;  ///< of an op gate
  std::vector<FixtureReference> fixtures;
  Bar bar;
  std::vector<RedArm> red_arms;
};

/// Throws Error(malformed) naming file and field for anything unknown, absent or of another type or range,
/// for a gate without red arms, two of one name, an arm that the subject cannot carry out, or a comparator
/// that the subject's answers do not suit; Error(unsupported) for another schema; Error(missing | io).
GateFile read_gate_file(const std::filesystem::path& path);

/// The music gate with the design's bar of a precision and, where wanted, all red arms.
GateFile default_music_gate(ops::Precision precision, bool red);

/// The decision gate with the default bar of a precision and both red arms.
GateFile default_decision_gate(ops::Precision precision, bool red);

/// Throws Error(mismatch) where the fixture is pinned and its bytes are not those.
void check_pin(const FixtureReference& fixture, const std::string& sha256);

}  // namespace assay::lab
