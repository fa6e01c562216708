#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/sha256.hpp"
#include "base/tests/temporary_directory.hpp"
#include "lab/receipt/machine.hpp"
#include "lab/receipt/receipt.hpp"
#include "lab/report/report.hpp"

namespace assay::lab {

/// A folder of gates with one file, and receipts of this machine about one model.
class ReportFixture : public testing::Test {
 public:
  using Json = nlohmann::ordered_json;
  using Change = std::function<void(Json& body)>;

  static inline const std::string kModel = std::string(64, 'a');

  void SetUp() override {
    // The gate that swiglu's receipts below are of; any file of the project's would do.
    std::filesystem::create_directories(folder_ / "gates");
    std::filesystem::copy_file(std::filesystem::path(ASSAY_TEST_DATA) / "../../lab/gates/op-swiglu.json",
                               gate_file());
    std::filesystem::create_directories(receipts());
  }

  std::filesystem::path receipts() const { return folder_ / "receipts"; }
  std::filesystem::path gate_file() const { return folder_ / "gates/op-swiglu.json"; }

  ReportOptions options() const {
    return {.receipts = {receipts()},
            .gates = folder_ / "gates",
            .ledger = {},
            .selection = {},
            .scope = {.device = this_machine().id, .models = {{.key = kModel, .name = "tiny"}}}};
  }

  /// Writes a receipt as a program would, `change`d before it is hashed; gives its SHA-256.
  std::string add(ReceiptKind kind, Json subject, Json result, const Change& change = nullptr) const {
    Json body = make_receipt(kind, std::move(subject), std::move(result));
    body["program"]["commit"] = std::string(40, 'c');
    body["program"]["modified"] = false;
    if (change) change(body);
    return write_receipt(receipts(), body).sha256;
  }

  Json gate() const { return {{"name", "op-swiglu"}, {"sha256", sha256_hex(gate_file())}}; }

  std::string add_op_gate(const std::string& form, bool pass = true, const Change& change = nullptr) const {
    const char* word = pass ? "PASS" : "FAIL";
    return add(ReceiptKind::gate,
               {{"type", "op"},
                {"op", "swiglu"},
                {"forms", "swiglu=" + form},
                {"precision", "fp32"},
                {"gate", gate()}},
               {{"comparator", "numeric"},
                {"thresholds", {{"nrmse", 1e-6}}},
                {"run", {{"cases", 3}, {"nrmse", 1e-7}, {"failures", Json::array()}, {"result", word}}},
                {"red_arms", {{"scaled_output", {{"cases_changed", 3}, {"outcome", "RED"}, {"nrmse", 0.1}}}}},
                {"result", word}},
               change);
  }

  std::string add_run_gate(const std::string& forms, const Change& change = nullptr) const {
    return add(
        ReceiptKind::gate,
        {{"type", "decision"},
         {"model_identity", kModel},
         {"forms", forms},
         {"precision", "fp32"},
         {"fixture", "tiny.fixture.json"},
         {"fixture_sha256", std::string(64, 'f')},
         {"gate", gate()}},
        {{"comparator", "decisions"},
         {"thresholds", {{"max_abs_dp", 0.02}}},
         {"run",
          {{"cases", 2},
           {"rows", 6},
           {"argmax_off_near_ties", "6/6"},
           {"near_ties_agreeing", "0/0"},
           {"max_abs_dp", 0.0123},
           {"mean_of_row_mean_abs_dp", 0.0012},
           {"finite", true},
           {"failures", Json::array()},
           {"result", "PASS"}}},
         {"red_arms", {{"swapped_states", {{"cases_changed", 2}, {"outcome", "RED"}, {"max_abs_dp", 0.9}}}}},
         {"result", "PASS"}},
        change);
  }

  /// A window of the forms `swiglu=reference` ("old") and `swiglu=vector` ("new") on a row of the model, the
  /// second `ratio` times as fast.
  std::string add_window(double ratio, const std::string& verdict, const Change& change = nullptr) const {
    const auto form = [](const std::string& name, const std::string& swiglu) {
      return Json{{"name", name},
                  {"precision", "fp32"},
                  {"forms", "swiglu=" + swiglu},
                  {"threads", 1},
                  {"call_tokens", 64}};
    };
    const auto time = [](const std::string& name, double seconds) {
      return Json{{"item", "row"},        {"form", name},         {"median", seconds},
                  {"p10", seconds * 0.9}, {"p90", seconds * 1.1}, {"spread", seconds * 0.05},
                  {"count", 8},           {"floor", nullptr},     {"suspicious", false}};
    };
    const auto sample = [](const std::string& name, double start, double seconds) {
      return Json{{"item", "row"}, {"form", name}, {"start", start}, {"wall_seconds", seconds}};
    };
    return add(ReceiptKind::window,
               {{"plan", {{"name", "rows"}, {"sha256", std::string(64, 'e')}, {"file", "rows.json"}}},
                {"device", "cpu"},
                {"items", Json::array({{{"name", "row"}, {"model", kModel}, {"request", "ticket.json"}}})},
                {"forms", Json::array({form("old", "reference"), form("new", "vector")})}},
               {{"window", {{"id", "00ff"}, {"started", "2026-01-31T12:00:00Z"}, {"seconds", 9.5}}},
                {"clean", true},
                {"contention", Json::array()},
                {"resident_bytes", {{"old", 1000}, {"new", 2000}}},
                {"times", Json::array({time("old", 0.003 * ratio), time("new", 0.003)})},
                {"pairs", Json::array({{{"item", "row"},
                                        {"baseline", "old"},
                                        {"candidate", "new"},
                                        {"pairs", 8},
                                        {"wins", 8},
                                        {"losses", 0},
                                        {"ratio", ratio},
                                        {"interval", {ratio * 0.95, ratio * 1.05}},
                                        {"verdict", verdict},
                                        {"suspicious", false},
                                        {"why", Json::array()}}})},
                {"environment",
                 {{"cores", 2},
                  {"before", {{"load", {0.1, 0.1, 0.1}}}},
                  {"whole", {{"other_cpu", 0.01}, {"steal", 0.0}, {"available_memory", 1 << 30}}},
                  {"other_processes", Json::array({{{"name", "cron"}, {"cpu", 0.01}}})}}},
                {"samples", Json::array({sample("old", 0.1, 0.003 * ratio), sample("new", 0.2, 0.003)})}},
               change);
  }

  std::string add_call_cost(const Change& change = nullptr) const {
    const auto point = [](std::size_t tokens, double median) {
      return Json{{"tokens", tokens},    {"median", median},    {"p10", median * 0.9},
                  {"p90", median * 1.1}, {"min", median * 0.9}, {"max", median * 1.1}};
    };
    Json curve{{"label", "default"},
               {"forms", "swiglu=vector"},
               {"fit",
                {{"chosen", "line"},
                 {"line",
                  {{"a", 0.25},
                   {"b", 0.125},
                   {"b_interval", {{"low", 0.12}, {"high", 0.13}}},
                   {"residual_rms", 0.01}}},
                 {"tiles", nullptr},
                 {"pieces", {{"residual_rms", 0.01}, {"pieces", Json::array()}}}}},
               {"points", Json::array({point(1, 0.375), point(8, 1.25), point(64, 8.25)})}};
    return add(ReceiptKind::call_cost,
               {{"model", {{"identity", kModel}, {"name", "tiny/run"}}},
                {"precision", "fp32"},
                {"threads", 1},
                {"rounds", 3}},
               {{"curves", Json::array({curve})}}, change);
  }

  std::string add_growth(const std::string& verdict) const {
    return add(ReceiptKind::growth,
               {{"model", {{"identity", kModel}, {"name", "tiny/run"}}},
                {"precision", "fp32"},
                {"threads", 1},
                {"forms", "swiglu=vector"}},
               {{"verdict", verdict},
                {"slope_bytes_per_call", 4096.0},
                {"interval", {{"low", 4000.0}, {"high", 4200.0}, {"confidence", 0.95}}},
                {"threshold_bytes_per_call", 1024.0},
                {"total_bytes", 81920.0},
                {"before_bytes", 1e6},
                {"trimmed_bytes", 0.0},
                {"calls", 4},
                {"distinct_lengths", 4},
                {"shortest", 1},
                {"longest", 4},
                {"block_calls", 2},
                {"steps", Json::array()},
                {"block_medians_bytes", {1e6, 1.1e6}},
                {"held_bytes", {1e6, 1e6, 1.1e6, 1.1e6}}});
  }

 protected:
  TemporaryDirectory folder_;
};

}  // namespace assay::lab
