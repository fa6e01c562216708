#include "lab/gate/gate_file.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "lab/json_reader.hpp"

namespace assay::lab {
namespace {

constexpr std::string_view kSchema = "assay.gate/1";
constexpr std::array<std::string_view, 4> kSubjects{"decision", "op", "taps", "music"};

/// Of every stage of a song: the design's bar for the exact path, and for products in bf16 what
/// docs/lab/gates.md measured with its margin.
constexpr double kExactMusicNrmse = 1e-4;
constexpr double kFastMusicNrmse = 0.2;
constexpr double kFastMusicPearson = 0.98;

[[noreturn]] void refuse(std::string where, std::string found, std::string expected) {
  throw Error(ErrorKind::malformed,
              {.where = std::move(where), .found = std::move(found), .expected = std::move(expected)});
}

ops::Precision read_precision(const JsonReader& reader, const std::string& text) {
  if (text == "fp32") return ops::Precision::fp32;
  if (text != "bf16") refuse(reader.where("precision"), "\"" + text + "\"", "fp32 or bf16");
  return ops::Precision::bf16;
}

void read_subject(JsonReader reader, GateFile& gate) {
  const auto type = reader.required<std::string>("type");
  const auto* found = std::find(kSubjects.begin(), kSubjects.end(), type);
  if (found == kSubjects.end()) {
    refuse(reader.where("type"), "\"" + type + "\"", fmt::format("one of {}", fmt::join(kSubjects, ", ")));
  }
  gate.subject = static_cast<SubjectKind>(found - kSubjects.begin());
  if (const auto precision = reader.optional<std::string>("precision")) {
    gate.precision = read_precision(reader, *precision);
  }
  if (gate.subject == SubjectKind::op) {
    gate.op = reader.required<std::string>("op");
    gate.seed = reader.required<std::uint64_t>("seed");
  }
  reader.finish();
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::vector<FixtureReference> read_fixtures(JsonReader& reader, const std::filesystem::path& folder) {
  std::vector<FixtureReference> fixtures;
  if (!reader.has("fixtures")) return fixtures;
  for (JsonReader& item : reader.required<std::vector<JsonReader>>("fixtures")) {
    FixtureReference fixture{.path = folder / item.required<std::string>("path"),
                             .sha256 = item.optional<std::string>("sha256").value_or("")};
    if (item.has("sha256") && !is_sha256(fixture.sha256)) {
      refuse(item.where("sha256"), "\"" + fixture.sha256 + "\"", "64 digits of lower-case hexadecimal");
    }
    item.finish();
    fixtures.push_back(std::move(fixture));
  }
  if (fixtures.empty()) refuse(reader.where("fixtures"), "none", "one or more, or no such field");
  return fixtures;
}

std::vector<RedArm> read_red_arms(JsonReader& reader) {
  std::vector<RedArm> arms;
  std::set<std::string> names;
  for (JsonReader& item : reader.required<std::vector<JsonReader>>("red_arms")) {
    arms.push_back(read_red_arm(item));
    if (!names.insert(arms.back().name).second) {
      refuse(item.where("arm"), "\"" + arms.back().name + "\" for the second time", "each arm once");
    }
  }
  // A gate that nothing was seen to fail has not been tested.
  if (arms.empty()) refuse(reader.where("red_arms"), "none", "one or more");
  return arms;
}

bool can_carry_out(SubjectKind subject, std::string_view arm) {
  if (arm == input_arm::kWrongSeed || arm == input_arm::kSwappedConditions || arm == "shifted_window") {
    return subject == SubjectKind::music;
  }
  return !is_input_arm(arm) || subject == SubjectKind::decision;
}

/// Pairs that could never be judged are found when the file is read rather than in the middle of a run.
void check_suits(const GateFile& gate, const JsonReader& reader) {
  const bool decisions = std::holds_alternative<DecisionBar>(gate.bar);
  const bool audio = std::holds_alternative<AudioBar>(gate.bar);
  if ((audio && gate.subject != SubjectKind::music) || (decisions && gate.subject != SubjectKind::decision)) {
    refuse(reader.where("comparator"), fmt::format("\"{}\"", comparator_name(gate.bar)),
           fmt::format("a comparator for the answers of a subject of type {}", to_string(gate.subject)));
  }
  if (gate.subject == SubjectKind::op && !gate.fixtures.empty()) {
    refuse(reader.where("fixtures"), "fixtures of an op gate", "none: its cases come from its seed");
  }
  for (const RedArm& arm : gate.red_arms) {
    if (!can_carry_out(gate.subject, arm.name)) {
      refuse(reader.where("red_arms"), "\"" + arm.name + "\"",
             fmt::format("arms that a subject of type {} can carry out", to_string(gate.subject)));
    }
  }
}

}  // namespace

std::string_view to_string(SubjectKind kind) {
  return kSubjects[static_cast<std::size_t>(kind)];
}

GateFile read_gate_file(const std::filesystem::path& path) {
  JsonFile file = read_json_file(path);
  JsonReader& reader = file.root;
  if (const auto schema = reader.required<std::string>("schema"); schema != kSchema) {
    throw Error(ErrorKind::unsupported,
                {.where = reader.where("schema"), .found = schema, .expected = std::string(kSchema)});
  }
  GateFile gate;
  gate.file = file.name;
  gate.sha256 = file.sha256;
  gate.name = reader.required<std::string>("name");
  if (gate.name.empty()) refuse(reader.where("name"), "an empty name", "a name");
  read_subject(reader.required<JsonReader>("subject"), gate);
  gate.fixtures = read_fixtures(reader, path.parent_path());
  gate.bar = read_bar(reader.required<std::string>("comparator"), reader.optional<JsonReader>("thresholds"),
                      file.name);
  gate.red_arms = read_red_arms(reader);
  reader.finish();
  check_suits(gate, reader);
  return gate;
}

GateFile default_decision_gate(ops::Precision precision, bool red) {
  GateFile gate;
  gate.name = "decision";
  gate.precision = precision;
  gate.bar = default_bar(precision);
  if (red) {
    for (const auto name : {input_arm::kNegatedInstructions, input_arm::kSwappedStates}) {
      gate.red_arms.push_back({.name = std::string(name), .amount = 0});
    }
  }
  return gate;
}

GateFile default_music_gate(ops::Precision precision, bool red) {
  GateFile gate;
  gate.name = "music";
  gate.subject = SubjectKind::music;
  gate.precision = precision;
  AudioBar bar;
  if (precision == ops::Precision::fp32) {
    bar.whole.nrmse = kExactMusicNrmse;
  } else {
    bar.whole.nrmse = kFastMusicNrmse;
    bar.whole.pearson = kFastMusicPearson;
  }
  gate.bar = bar;
  if (red) {
    gate.red_arms = {{.name = std::string(input_arm::kWrongSeed), .amount = 0},
                     {.name = std::string(input_arm::kSwappedConditions), .amount = 0},
                     {.name = "shifted_window", .amount = 0.1}};
  }
  return gate;
}

void check_pin(const FixtureReference& fixture, const std::string& sha256) {
  if (fixture.sha256.empty() || fixture.sha256 == sha256) return;
  throw Error(ErrorKind::mismatch, {.where = fixture.path.string(),
                                    .found = "SHA-256 " + sha256,
                                    .expected = "the " + fixture.sha256 + " that the gate pins",
                                    .advice = "restore the fixture, or make a gate for the new one"});
}

}  // namespace assay::lab
