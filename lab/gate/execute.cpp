#include "lab/gate/execute.hpp"

#include <memory>
#include <string>

#include "base/error.hpp"
#include "decision/model.hpp"
#include "lab/decision_fixture.hpp"
#include "lab/gate/decision_subject.hpp"
#include "lab/gate/music_subject.hpp"
#include "lab/gate/op_subject.hpp"
#include "lab/gate/taps_subject.hpp"

namespace assay::lab {
namespace {

[[noreturn]] void refuse(const GateFile& gate, std::string found, std::string expected) {
  throw Error(ErrorKind::invalid_argument,
              {.where = "gate " + gate.name, .found = std::move(found), .expected = std::move(expected)});
}

std::vector<FixtureReference> choose_fixtures(const GateFile& gate, const GateTarget& target) {
  if (gate.subject == SubjectKind::op) {
    if (!target.model.empty() || target.base || !target.fixtures.empty()) {
      refuse(gate, "a model, base or fixture", "none of them: the gate is of an op");
    }
    return {};
  }
  if (target.model.empty()) refuse(gate, "no model", "--model");
  if (!gate.fixtures.empty()) {
    if (!target.fixtures.empty()) refuse(gate, "a fixture", "none: the gate names its own");
    return gate.fixtures;
  }
  if (target.fixtures.empty()) refuse(gate, "no fixture", "--fixture, for the gate names none");
  std::vector<FixtureReference> fixtures;
  for (const auto& path : target.fixtures) fixtures.push_back({.path = path, .sha256 = {}});
  return fixtures;
}

std::vector<GateReport> run_decisions(const GateFile& gate, const GateTarget& target,
                                      ops::Precision precision,
                                      const std::vector<FixtureReference>& references) {
  // Fixtures are read first: a bad one is found before minutes of loading.
  std::vector<DecisionFixture> fixtures;
  for (const FixtureReference& reference : references) {
    fixtures.push_back(read_decision_fixture(reference.path));
    check_pin(reference, fixtures.back().sha256);
  }
  const auto model = decision::DecisionModel::load(target.model, target.base,
                                                   {.precision = precision,
                                                    .forms = target.forms,
                                                    .threads = target.threads,
                                                    .progress = target.progress,
                                                    .parts = target.parts});
  std::vector<GateReport> reports;
  for (const DecisionFixture& fixture : fixtures) {
    DecisionSubject subject(*model, fixture);
    reports.push_back(run_gate(gate, subject, target.stop));
  }
  return reports;
}

std::vector<GateReport> run_music(const GateFile& gate, const GateTarget& target, ops::Precision precision,
                                  const std::vector<FixtureReference>& references) {
  if (target.base) refuse(gate, "a base", "none: a music model has its parts beside it");
  if (target.parts)
    refuse(gate, "forms that differ between layers", "one form an op: songs are not bisected");
  std::vector<MusicFixture> fixtures;
  for (const FixtureReference& reference : references) {
    fixtures.push_back(read_music_fixture(reference.path));
    check_pin(reference, fixtures.back().sha256);
  }
  std::vector<GateReport> reports;
  for (const MusicFixture& fixture : fixtures) {
    MusicSubject subject(music::Checkpoint::open(target.model), fixture,
                         ops::select_forms(precision, target.forms), precision, target.threads);
    reports.push_back(run_gate(gate, subject, target.stop));
  }
  return reports;
}

std::vector<GateReport> run_taps(const GateFile& gate, const GateTarget& target, ops::Precision precision,
                                 const std::vector<FixtureReference>& references) {
  std::vector<GateReport> reports;
  for (const FixtureReference& reference : references) {
    const TapsFixture taps = read_taps(reference.path);
    check_pin(reference, taps.sha256);
    TapsSubject subject(decision::open_checkpoint(target.model, target.base), taps,
                        ops::select_forms(precision, target.forms), precision, target.parts);
    reports.push_back(run_gate(gate, subject, target.stop));
  }
  return reports;
}

}  // namespace

ops::Precision run_precision(const GateFile& gate, const GateTarget& target) {
  if (gate.precision && target.precision && *gate.precision != *target.precision) {
    throw Error(ErrorKind::mismatch, {.where = "gate " + gate.name,
                                      .found = "a run at " + std::string(to_string(*target.precision)),
                                      .expected = std::string(to_string(*gate.precision)),
                                      .advice = "use the gate that is for this precision"});
  }
  if (gate.precision) return *gate.precision;
  if (target.precision) return *target.precision;
  return gate.subject == SubjectKind::decision ? ops::Precision::bf16 : ops::Precision::fp32;
}

std::vector<GateReport> execute_gate(const GateFile& gate, const GateTarget& target) {
  const ops::Precision precision = run_precision(gate, target);
  const std::vector<FixtureReference> fixtures = choose_fixtures(gate, target);
  switch (gate.subject) {
    case SubjectKind::decision:
      return run_decisions(gate, target, precision, fixtures);
    case SubjectKind::taps:
      return run_taps(gate, target, precision, fixtures);
    case SubjectKind::music:
      return run_music(gate, target, precision, fixtures);
    case SubjectKind::op:
      break;
  }
  OpSubject subject(gate.op, gate.seed, ops::select_forms(precision, target.forms), precision);
  return {run_gate(gate, subject, target.stop)};
}

}  // namespace assay::lab
