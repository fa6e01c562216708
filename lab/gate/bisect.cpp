#include "lab/gate/bisect.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "decision/checkpoint.hpp"

namespace assay::lab {
namespace {

using backbone::LayerPart;
using formats::LayerType;
using Groups = std::vector<std::size_t>;
using Json = nlohmann::ordered_json;

Groups without(const Groups& groups, const Groups& removed) {
  Groups rest;
  std::set_difference(groups.begin(), groups.end(), removed.begin(), removed.end(), std::back_inserter(rest));
  return rest;
}

/// `groups` in `count` consecutive pieces of nearly equal size.
std::vector<Groups> pieces(const Groups& groups, std::size_t count) {
  std::vector<Groups> result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = static_cast<std::ptrdiff_t>(groups.size() * i / count);
    const auto last = static_cast<std::ptrdiff_t>(groups.size() * (i + 1) / count);
    result.emplace_back(groups.begin() + first, groups.begin() + last);
  }
  return result;
}

/// A smaller failing set among the pieces or their complements; empty where there is none.
Groups reduced(const Groups& groups, std::size_t count, const FailsWith& fails, bool& is_piece) {
  const std::vector<Groups> parts = pieces(groups, count);
  is_piece = true;
  for (const Groups& part : parts) {
    if (fails(part)) return part;
  }
  is_piece = false;
  for (const Groups& part : parts) {
    Groups rest = without(groups, part);
    // With two pieces a complement is the other piece, which passed.
    if (count > 2 && fails(rest)) return rest;
  }
  return {};
}

/// Remembers verdicts: different roads of a search meet at the same set.
class Memory {
 public:
  explicit Memory(const FailsWith& fails) : fails_(fails) {}
  bool operator()(const Groups& groups) {
    if (groups.empty()) return false;
    const auto known = known_.find(groups);
    if (known != known_.end()) return known->second;
    return known_[groups] = fails_(groups);
  }

 private:
  const FailsWith& fails_;
  std::map<Groups, bool> known_;
};

/// Whether a form of the op runs in this part of a layer of this type.
bool runs_in(std::string_view op, LayerPart part, LayerType type) {
  const bool linear = type == LayerType::linear_attention;
  const bool product = part == LayerPart::mixer_in || part == LayerPart::mixer_out ||
                       part == LayerPart::mlp_in || part == LayerPart::mlp_out;
  if (op == "matmul") return product;
  if (op == "gated_delta_rule" || op == "causal_conv1d") return linear && part == LayerPart::mixer;
  if (op == "attention" || op == "rope") return !linear && part == LayerPart::mixer;
  if (op == "rms_norm")
    return part == LayerPart::mixer_in || part == LayerPart::mixer || part == LayerPart::mlp_in;
  return op == "swiglu" && part == LayerPart::mlp_in;
}

struct Place {
  std::size_t layer;
  LayerPart part;
};

std::vector<Place> places_of(const std::vector<std::string>& ops, const std::vector<LayerType>& layers) {
  std::vector<Place> places;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const LayerPart part : backbone::kLayerParts) {
      const bool runs = std::any_of(ops.begin(), ops.end(),
                                    [&](const std::string& op) { return runs_in(op, part, layers[layer]); });
      if (runs) places.push_back({layer, part});
    }
  }
  return places;
}

std::vector<std::string> names_of(const BisectProblem& problem, const Groups& parts) {
  std::vector<std::string> names;
  for (const std::size_t part : parts) names.push_back(problem.parts[part].name);
  return names;
}

Json trial_json(const BisectTrial& trial) {
  Json measures = Json::object();
  for (const auto& [name, value] : trial.columns) measures[name] = value;
  return {
      {"groups", trial.groups}, {"result", trial.pass ? "PASS" : "FAIL"}, {"measures", std::move(measures)}};
}

std::string trial_text(const BisectTrial& trial) {
  std::string text = trial.pass ? "PASS" : "FAIL";
  for (const auto& [name, value] : trial.columns) text += fmt::format(", {} {}", name, value);
  return text;
}

std::string sets_text(const std::string& what, const std::vector<std::vector<std::string>>& sets) {
  std::string text;
  for (const auto& set : sets) {
    text += fmt::format("{}: {}{}\n", what, fmt::join(set, " + "),
                        set.size() > 1 ? " (together; without any one of them the gate passes)" : "");
  }
  return text;
}

void check_ends(const BisectReport& report) {
  if (!report.nowhere.pass) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "bisect",
                 .found = "the gate fails without the suspect form too: " + trial_text(report.nowhere),
                 .expected = "a run elsewhere that passes",
                 .advice = "gate the forms that run elsewhere first"});
  }
  if (report.everywhere.pass) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "bisect",
                 .found = "the suspect form passes in all layers at once: " + trial_text(report.everywhere),
                 .expected = "a form that fails there",
                 .advice = "its damage, if any, is in the embedding or the final norm"});
  }
}

}  // namespace

Groups smallest_failing(const Groups& groups, const FailsWith& fails) {
  Groups current = groups;
  std::size_t count = 2;
  while (current.size() > 1) {
    bool is_piece = false;
    const Groups smaller = reduced(current, std::min(count, current.size()), fails, is_piece);
    if (!smaller.empty()) {
      current = smaller;
      count = is_piece ? 2 : std::max<std::size_t>(count - 1, 2);
    } else if (count >= current.size()) {
      break;
    } else {
      count = std::min(2 * count, current.size());
    }
  }
  return current;
}

std::vector<Groups> all_failing(std::size_t groups, const FailsWith& fails) {
  Memory memory(fails);
  const FailsWith remembered = [&](const Groups& set) { return memory(set); };
  Groups rest(groups);
  for (std::size_t i = 0; i < groups; ++i) rest[i] = i;
  std::vector<Groups> sets;
  while (remembered(rest)) {
    sets.push_back(smallest_failing(rest, remembered));
    rest = without(rest, sets.back());
  }
  return sets;
}

BisectReport bisect(const BisectProblem& problem) {
  BisectReport report{};  // an aggregate: no implicit constructor that claims not to throw
  if (problem.parts.empty()) {
    throw Error(ErrorKind::invalid_argument, {.where = "bisect",
                                              .found = "no layer of this model runs the op",
                                              .expected = "an op that its layers run"});
  }
  const auto run = [&](const Groups& parts) {
    report.trials.push_back(problem.run(parts));
    report.trials.back().groups = names_of(problem, parts);
    return report.trials.back();
  };
  std::vector<std::size_t> layers;
  Groups all;
  for (std::size_t i = 0; i < problem.parts.size(); ++i) {
    all.push_back(i);
    if (layers.empty() || layers.back() != problem.parts[i].layer) layers.push_back(problem.parts[i].layer);
  }
  report.nowhere = run({});
  report.everywhere = run(all);
  check_ends(report);

  Groups suspects;
  const auto parts_of_layers = [&](const Groups& chosen) {
    Groups parts;
    for (const std::size_t i : all) {
      const auto layer = std::find(layers.begin(), layers.end(), problem.parts[i].layer) - layers.begin();
      if (std::binary_search(chosen.begin(), chosen.end(), static_cast<std::size_t>(layer)))
        parts.push_back(i);
    }
    return parts;
  };
  for (const Groups& set : all_failing(layers.size(), [&](const Groups& chosen) {
         const Groups parts = parts_of_layers(chosen);
         return parts == all || !run(parts).pass;
       })) {
    std::vector<std::string> names;
    for (const std::size_t layer : set) names.push_back(fmt::format("layer {}", layers[layer]));
    report.layers.push_back(std::move(names));
    const Groups candidates = parts_of_layers(set);
    for (const Groups& found : all_failing(candidates.size(), [&](const Groups& chosen) {
           if (chosen.size() == candidates.size()) return true;
           Groups parts;
           for (const std::size_t i : chosen) parts.push_back(candidates[i]);
           return !run(parts).pass;
         })) {
      Groups parts;
      for (const std::size_t i : found) parts.push_back(candidates[i]);
      report.parts.push_back(names_of(problem, parts));
    }
  }
  return report;
}

BisectReport bisect_selection(const GateFile& gate, const GateTarget& target, const ops::Selection& suspect,
                              const std::vector<std::string>& ops,
                              const std::function<void(const BisectTrial&)>& progress) {
  if (gate.subject == SubjectKind::op) {
    throw Error(ErrorKind::invalid_argument, {.where = "gate " + gate.name,
                                              .found = "a gate of an op",
                                              .expected = "a decision or taps gate: an op has no layers"});
  }
  GateFile without_arms = gate;
  without_arms.red_arms.clear();
  const auto layers = decision::open_checkpoint(target.model, target.base).config.layers;
  const std::vector<Place> places = places_of(ops, layers);
  BisectProblem problem;
  for (const Place& place : places) {
    problem.parts.push_back({place.layer, fmt::format("layer {} {}", place.layer,
                                                      backbone::part_name(place.part, layers[place.layer]))});
  }
  Json subject;
  problem.run = [&](const Groups& parts) {
    std::set<std::pair<std::size_t, LayerPart>> chosen;
    for (const std::size_t part : parts) chosen.insert({places[part].layer, places[part].part});
    GateTarget trial = target;
    trial.parts = [&](std::size_t layer, LayerPart part) {
      return chosen.contains({layer, part}) ? &suspect : nullptr;
    };
    const std::vector<GateReport> reports = execute_gate(without_arms, trial);
    if (reports.size() != 1) {
      throw Error(ErrorKind::invalid_argument, {.where = "gate " + gate.name,
                                                .found = counted(reports.size(), "fixture"),
                                                .expected = "one to bisect by"});
    }
    subject = reports.front().subject;
    BisectTrial result{
        .groups = {}, .pass = reports.front().pass(), .columns = reports.front().verdict.columns};
    if (progress) progress(result);
    return result;
  };
  BisectReport report = bisect(problem);
  report.gate = gate.name;
  report.gate_sha256 = gate.sha256;
  report.elsewhere = subject["forms"].get<std::string>();
  report.suspect = ops::describe(suspect);
  report.subject = std::move(subject);
  return report;
}

BisectReport bisect_forms(const GateFile& gate, const GateTarget& target, const ops::FormOverrides& elsewhere,
                          const std::function<void(const BisectTrial&)>& progress) {
  if (target.forms.empty()) {
    throw Error(ErrorKind::invalid_argument,
                {.where = "bisect", .found = "no form", .expected = "--form op=name, the form that fails"});
  }
  const ops::Precision precision = run_precision(gate, target);
  const ops::Selection suspect = ops::select_forms(precision, target.forms);
  std::vector<std::string> ops;
  GateTarget base = target;
  base.precision = precision;
  GateFile any_precision = gate;
  for (const auto& [op, name] : target.forms) {
    ops.push_back(op);
    base.forms[op] = "reference";
    if (op != "matmul") continue;
    base.precision = ops::Precision::fp32;
    any_precision.precision.reset();
  }
  for (const auto& [op, name] : elsewhere) base.forms[op] = name;
  return bisect_selection(any_precision, base, suspect, ops, progress);
}

Json receipt_subject(const BisectReport& report) {
  Json json = report.subject;
  json.erase("forms");
  json["gate"] = {{"name", report.gate}, {"sha256", nullptr}};
  if (!report.gate_sha256.empty()) json["gate"]["sha256"] = report.gate_sha256;
  json["suspect"] = report.suspect;
  json["elsewhere"] = report.elsewhere;
  return json;
}

Json receipt_result(const BisectReport& report) {
  Json json{{"everywhere", trial_json(report.everywhere)},
            {"nowhere", trial_json(report.nowhere)},
            {"layers", report.layers},
            {"parts", report.parts},
            {"trials", Json::array()}};
  for (const BisectTrial& trial : report.trials) json["trials"].push_back(trial_json(trial));
  return json;
}

std::string to_text(const BisectReport& report) {
  std::string text = fmt::format("gate       {}\nsuspect    {}\nelsewhere  {}\n", printable(report.gate),
                                 report.suspect, report.elsewhere);
  text += fmt::format("everywhere {}\nnowhere    {}\n", trial_text(report.everywhere),
                      trial_text(report.nowhere));
  for (std::size_t i = 2; i < report.trials.size(); ++i) {
    text +=
        fmt::format("  {}: {}\n", fmt::join(report.trials[i].groups, " + "), trial_text(report.trials[i]));
  }
  text += sets_text("damage in layers", report.layers);
  text += sets_text("damage in parts", report.parts);
  return text + counted(report.trials.size(), "run") + " of the gate\n";
}

}  // namespace assay::lab
