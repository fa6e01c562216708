#include "lab/report/report.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/tests/expect_error.hpp"
#include "lab/tests/report_fixture.hpp"

namespace assay::lab {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

class Report : public ReportFixture {
 protected:
  Json make() const { return make_report(options()); }

  /// The one refusal of a report, whose reason it gives.
  std::string only_refusal(const Json& report) const {
    EXPECT_EQ(report["refused"].size(), 1u) << report["refused"].dump(1);
    return report["refused"].empty() ? "" : report["refused"][0]["reason"].get<std::string>();
  }

  static Json form(const Json& report, const std::string& name) {
    const auto found = std::find_if(report["forms"].begin(), report["forms"].end(), [&](const Json& row) {
      return row["op"] == "swiglu" && row["precision"] == "fp32" && row["form"] == name;
    });
    return found == report["forms"].end() ? Json() : *found;
  }
};

TEST_F(Report, HoldsWhatReceiptsSayAndNamesEachByItsHash) {
  const std::string gate = add_op_gate("vector");
  const std::string run = add_run_gate("swiglu=vector");
  const std::string window = add_window(1.5, "faster");
  add_op_gate("reference");
  add_call_cost();
  add_growth("not growing");
  const Json report = make();
  EXPECT_EQ(report["refused"], Json::array());
  EXPECT_EQ(report["summary"]["gates"]["passed"], 3);
  const Json vector = form(report, "vector");
  EXPECT_EQ(vector["gates"]["op"]["receipt"], gate);
  EXPECT_EQ(vector["gates"]["runs_passed"], 1);
  EXPECT_EQ(vector["gates"]["max_abs_dp"], 0.0123);
  EXPECT_EQ(vector["against"][0]["receipt"], window);
  EXPECT_EQ(report["windows"][0]["times"][1]["median"], 3.0) << "milliseconds";
  EXPECT_EQ(report["call_cost"][0]["curves"][0]["fit"]["line"]["b"], 0.125);
  EXPECT_EQ(report["growth"][0]["held"]["call"], (Json{1, 2, 3, 4}));
  for (const std::string& sha256 : {gate, run, window}) {
    EXPECT_THAT(report["sources"].dump(), HasSubstr(sha256));
  }
  EXPECT_EQ(report["bars"][0]["sha256"], sha256_hex(gate_file()));
}

TEST_F(Report, TheFastestFormIsOneWhoseGatesPassedAndIsToldFromTheOthersByAWindow) {
  add_window(1.5, "faster");
  add_op_gate("reference");
  Json row = make()["summary"]["fastest"][0];
  EXPECT_EQ(row["form"], "old") << "the faster one has no gate";
  EXPECT_EQ(row["unadmitted"], (Json::array({{{"form", "new"}, {"gates", "no gate"}}})));
  add_op_gate("vector");
  row = make()["summary"]["fastest"][0];
  EXPECT_EQ(row["form"], "new");
  EXPECT_EQ(row["next"]["form"], "old");
  EXPECT_EQ(row["next"]["ratio"], 1.5);
  EXPECT_EQ(row["next"]["verdict"], "faster");
  EXPECT_TRUE(row["baseline"].is_null()) << "it is the next";
  EXPECT_EQ(row["gates"], "ops passed");
  EXPECT_EQ(row["unadmitted"], Json::array());
  add_run_gate("swiglu=vector");
  EXPECT_EQ(make()["summary"]["fastest"][0]["gates"], "PASS");
}

TEST_F(Report, AFormWhoseLatestGateFailedIsNotFastest) {
  add_window(1.5, "faster");
  add_op_gate("reference");
  add_op_gate("vector", true, [](Json& body) { body["made"] = "2026-01-01T00:00:00Z"; });
  add_op_gate("vector", false);
  const Json report = make();
  EXPECT_EQ(report["summary"]["fastest"][0]["form"], "old");
  EXPECT_EQ(report["summary"]["gates"]["failed"], 1);
  EXPECT_EQ(report["summary"]["gates"]["passed"], 1)
      << "the earlier verdict of the same gate no longer counts";
  EXPECT_EQ(form(report, "vector")["state"], "refused");
}

TEST_F(Report, APairIsTurnedWhereTheBaselineIsTheFasterForm) {
  add_window(0.8, "slower");
  add_op_gate("reference");
  add_op_gate("vector");
  const Json row = make()["summary"]["fastest"][0];
  EXPECT_EQ(row["form"], "old");
  EXPECT_EQ(row["next"]["form"], "new");
  EXPECT_EQ(row["next"]["verdict"], "faster");
  EXPECT_EQ(row["next"]["ratio"], 1.25);
  EXPECT_NEAR(row["next"]["interval"][0].get<double>(), 1 / (0.8 * 1.05), 1e-12);
}

TEST_F(Report, AContendedWindowIsShownAndCalledNoEvidence) {
  add_op_gate("reference");
  add_op_gate("vector");
  add_window(1.5, "faster", [](Json& body) {
    body["result"]["clean"] = false;
    body["result"]["contention"] = {"other processes took 90 %"};
  });
  const Json report = make();
  EXPECT_EQ(report["summary"]["windows"]["contended"], 1);
  EXPECT_EQ(form(report, "vector")["against"], Json::array());
  EXPECT_THAT(report["summary"]["attention"].dump(), HasSubstr("its times are no evidence"));
  EXPECT_EQ(report["summary"]["fastest"][0]["clean"], false);
}

TEST_F(Report, ReceiptsThatDoNotMatchAreRefusedWithTheReasonAndUsedNowhere) {
  const std::map<std::string, Change> changes{
      {"another device, cpu-elsewhere", [](Json& body) { body["device"]["id"] = "cpu-elsewhere"; }},
      {"another model, bbbb", [](Json& body) { body["subject"]["model_identity"] = std::string(64, 'b'); }},
      {"whose file has changed",
       [](Json& body) { body["subject"]["gate"]["sha256"] = std::string(64, '0'); }},
      {"that no file fixes", [](Json& body) { body["subject"]["gate"]["sha256"] = nullptr; }},
      {"another build, commit dddd",
       [](Json& body) {
         body["program"]["commit"] = std::string(40, 'd');
         body["made"] = "2026-01-01T00:00:00Z";
       }},
      {"another build, program",
       [](Json& body) {
         body["program"]["modified"] = true;
         body["made"] = "2026-01-01T00:00:00Z";
       }},
      {"PASS of a run that failed", [](Json& body) { body["result"]["run"]["result"] = "FAIL"; }},
      {"a red arm that is not RED",
       [](Json& body) { body["result"]["red_arms"]["swapped_states"]["outcome"] = "GREEN"; }},
      {"PASS without a red arm", [](Json& body) { body["result"]["red_arms"] = Json::object(); }},
      {"'MAYBE'", [](Json& body) { body["result"]["result"] = "MAYBE"; }},
      {"no field 'comparator'", [](Json& body) { body["result"].erase("comparator"); }},
      {"subject.forms", [](Json& body) { body["subject"]["forms"] = 7; }},
  };
  add_op_gate("vector");
  for (const auto& change : changes) {
    const std::string sha256 = add_run_gate("swiglu=reference", [&](Json& body) {
      body["result"]["run"]["max_abs_dp"] = 0.987654321;
      change.second(body);
    });
    const Json report = make();
    EXPECT_THAT(only_refusal(report), HasSubstr(change.first));
    EXPECT_THAT(report.dump(), Not(HasSubstr("0.987654321"))) << change.first;
    EXPECT_EQ(report["refused"][0]["sha256"], sha256);
    std::filesystem::remove(receipts() / (sha256 + ".json"));
  }
}

TEST_F(Report, AnEditedReceiptIsRefusedByItsBytes) {
  const std::string sha256 = add_run_gate("swiglu=vector");
  const std::filesystem::path file = receipts() / (sha256 + ".json");
  std::string text = read_text_file(file);
  text.replace(text.find("0.0123"), 6, "0.0001");
  write_file_atomically(file, text);
  const Json report = make();
  EXPECT_THAT(only_refusal(report), HasSubstr("edited"));
  EXPECT_EQ(report["refused"][0]["sha256"], sha256_hex(file));
  EXPECT_EQ(report["gates"], Json::array());
}

TEST_F(Report, WhatIsNoReceiptIsRefusedToo) {
  const auto named_by_bytes = [&](const std::string& text) {
    const std::string sha256 = sha256_hex(std::as_bytes(std::span(text)));
    write_file_atomically(receipts() / (sha256 + ".json"), text);
  };
  named_by_bytes("not JSON");
  named_by_bytes(std::string(100'000, '['));
  named_by_bytes("{\"schema\": \"assay.receipt/1\", \"schema\": \"assay.receipt/1\"}");
  named_by_bytes("[]");
  std::filesystem::create_directories(receipts() / "folder.json");
  std::filesystem::create_symlink("itself.json", receipts() / "itself.json");
  ASSERT_EQ(::mkfifo((receipts() / "pipe.json").c_str(), 0600), 0);
  EXPECT_EQ(make()["refused"].size(), 7u);
}

TEST_F(Report, AWindowThatContradictsItselfIsRefused) {
  const std::map<std::string, Change> changes{
      {"clean window with reasons", [](Json& body) { body["result"]["contention"] = {"busy"}; }},
      {"contended one without", [](Json& body) { body["result"]["clean"] = false; }},
      {"'ghost'", [](Json& body) { body["result"]["times"][0]["form"] = "ghost"; }},
      {"'new'", [](Json& body) { body["result"]["times"][0]["item"] = "new"; }},
      {"interval",
       [](Json& body) {
         body["result"]["pairs"][0]["interval"] = {2.0, 1.0};
       }},
      {"interval", [](Json& body) { body["result"]["pairs"][0]["ratio"] = 0.0; }},
      {"fields of a window", [](Json& body) { body["subject"]["forms"].erase(0); }},
  };
  for (const auto& [reason, change] : changes) {
    const std::string sha256 = add_window(1.5, "faster", change);
    EXPECT_THAT(only_refusal(make()), HasSubstr(reason));
    std::filesystem::remove(receipts() / (sha256 + ".json"));
  }
}

TEST_F(Report, ItemsOfOtherModelsAreLeftOutOfAWindowByName) {
  add_window(1.5, "faster", [](Json& body) {
    Json other = body["subject"]["items"][0];
    other["name"] = "other";
    other["model"] = "synthetic kev-4b";
    body["subject"]["items"].push_back(other);
    Json time = body["result"]["times"][0];
    time["item"] = "other";
    body["result"]["times"].push_back(time);
  });
  const Json window = make()["windows"][0];
  EXPECT_EQ(window["items"].size(), 1u);
  EXPECT_EQ(window["times"].size(), 2u);
  EXPECT_EQ(window["left_out_items"], Json{"other"});
}

TEST_F(Report, ReceiptsOfSeveralBuildsStandTogetherOnlyOnRequest) {
  add_run_gate("swiglu=vector", [](Json& body) {
    body["program"]["commit"] = "abcdef0123" + std::string(30, '0');
    body["made"] = "2026-01-01T00:00:00Z";
  });
  add_op_gate("vector");
  ReportOptions asked = options();
  EXPECT_EQ(make_report(asked)["gates"][0]["type"], "op") << "of equals the newest";
  asked.scope.build = "any";
  const Json both = make_report(asked);
  EXPECT_EQ(both["gates"].size(), 2u);
  EXPECT_THAT(both["summary"]["attention"].dump(), HasSubstr("several builds"));
  asked.scope.build = "abcdef0";
  const Json one = make_report(asked);
  ASSERT_EQ(one["gates"].size(), 1u);
  EXPECT_EQ(one["gates"][0]["type"], "decision");
  for (const char* bad : {"latest", "abc", "", "ABCDEF0"}) {
    asked.scope.build = bad;
    expect_error(ErrorKind::invalid_argument, "--build", [&] { make_report(asked); });
  }
}

TEST_F(Report, OneReceiptOfANewBuildDoesNotRefuseAllOthers) {
  add_op_gate("reference");
  add_op_gate("vector");
  const std::string other = add_run_gate("swiglu=vector", [](Json& body) {
    body["program"]["commit"] = "abcdef0123" + std::string(30, '0');
    body["made"] = "2099-01-01T00:00:00Z";
  });
  Json report = make();
  EXPECT_EQ(report["gates"].size(), 2u);
  EXPECT_EQ(report["refused"][0]["sha256"], other);
  EXPECT_EQ(report["refused"][0]["cause"], "build");
  EXPECT_THAT(report["summary"]["attention"].dump(), HasSubstr("another build"));
  ReportOptions asked = options();
  asked.scope.build = "newest";
  report = make_report(asked);
  EXPECT_EQ(report["gates"].size(), 1u);
  EXPECT_EQ(report["refused"].size(), 2u);
}

TEST_F(Report, WithoutAModelTheOnlyOneIsTakenAndSeveralAreAnError) {
  ReportOptions asked = options();
  asked.scope.models.clear();
  expect_error(ErrorKind::invalid_argument, "no receipt of", [&] { make_report(asked); });
  add_call_cost();
  add_op_gate("vector");
  const Json report = make_report(asked);
  EXPECT_EQ(report["about"]["models"][0]["key"], kModel);
  EXPECT_EQ(report["about"]["models"][0]["name"], "tiny/run");
  add_call_cost([](Json& body) { body["subject"]["model"] = {{"shape", "kev-4b"}, {"seed", 1}}; });
  expect_error(ErrorKind::invalid_argument, "synthetic kev-4b", [&] { make_report(asked); });
}

TEST_F(Report, FoldersThatAreNotThereAreErrors) {
  ReportOptions asked = options();
  asked.receipts.push_back(folder_ / "nowhere");
  expect_error(ErrorKind::missing, "nowhere", [&] { make_report(asked); });
  asked = options();
  asked.gates = folder_ / "no-gates";
  expect_error(ErrorKind::missing, "no-gates", [&] { make_report(asked); });
}

TEST_F(Report, ASweepsRowsThatDidNotRunAreListedAndItsMissingReceiptsToo) {
  const std::string gone(64, '9');
  add(ReceiptKind::sweep,
      {{"gates", Json::array()},
       {"fixtures", Json::array({{{"fixture", "tiny.fixture.json"}, {"model_identity", kModel}}})}},
      {{"rows", Json::array({{{"gate", "g"},
                              {"fixture", "tiny.fixture.json"},
                              {"precision", "bf16"},
                              {"form", "matmul=amx_bf16"},
                              {"result", "not run"},
                              {"reason", "the machine lacks it"}},
                             {{"gate", "g"},
                              {"fixture", ""},
                              {"precision", "fp32"},
                              {"form", "swiglu=vector"},
                              {"result", "PASS"},
                              {"receipt", gone}},
                             {{"gate", "g"},
                              {"fixture", "other.json"},
                              {"precision", "fp32"},
                              {"form", "default"},
                              {"result", "not run"},
                              {"reason", "x"}}})}});
  const Json report = make();
  ASSERT_EQ(report["not_run"].size(), 1u);
  EXPECT_EQ(report["not_run"][0]["reason"], "the machine lacks it");
  EXPECT_THAT(only_refusal(report), HasSubstr("not here"));
  EXPECT_EQ(report["refused"][0]["sha256"], gone);
}

TEST_F(Report, ASelectionIsHeldAgainstTheReceipts) {
  add_op_gate("vector");
  ReportOptions asked = options();
  const auto choose = [&](const std::string& form, const std::string& device) {
    const Json choice{
        {"op", "swiglu"}, {"precision", "fp32"}, {"form", form}, {"why", "w"}, {"receipts", Json::array()}};
    asked.selection = folder_.write("selection.json", Json{{"schema", "assay.selection/1"},
                                                           {"device", device},
                                                           {"made", "2026-01-31T12:00:00Z"},
                                                           {"choices", {choice}},
                                                           {"refused", Json::array()}}
                                                          .dump());
    return make_report(asked);
  };
  EXPECT_EQ(choose("vector", asked.scope.device)["selection"]["differences"], Json::array());
  EXPECT_THAT(choose("reference", asked.scope.device)["selection"]["differences"][0].get<std::string>(),
              HasSubstr("speak for vector"));
  const Json other = choose("vector", "cpu-elsewhere");
  EXPECT_TRUE(other["selection"].is_null());
  EXPECT_THAT(only_refusal(other), HasSubstr("cpu-elsewhere"));
}

TEST_F(Report, AFormThatGrowsIsNotToBeOverlooked) {
  add_growth("growing");
  const Json attention = make()["summary"]["attention"];
  ASSERT_EQ(attention.size(), 1u);
  EXPECT_EQ(attention[0]["tone"], "bad");
  EXPECT_THAT(attention[0]["text"].get<std::string>(), HasSubstr("4096 bytes a call"));
}

/// Puts a string that wants to be markup before every text of a document. Words by which sections choose what
/// to show are kept, or nothing would be shown.
void make_hostile(Json& value, const std::string& name = {}) {
  static const std::string kHostile =
      "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x01";
  if (value.is_object()) {
    for (auto field = value.begin(); field != value.end(); ++field) make_hostile(*field, field.key());
  } else if (value.is_array()) {
    for (Json& item : value) make_hostile(item, name);
  } else if (value.is_string() && name != "type" && name != "forms") {
    value = kHostile + value.get<std::string>();
  }
}

TEST_F(Report, NoTextOfAReceiptBecomesMarkup) {
  add_op_gate("vector");
  add_run_gate("swiglu=vector");
  add_window(1.5, "faster");
  add_call_cost();
  add_growth("growing");
  Json report = make();
  report["refused"] =
      Json::array({{{"file", "f"}, {"sha256", nullptr}, {"cause", "bytes"}, {"reason", "r"}}});
  report["gates"][0]["measures"]["<script>alert(3)</script>"] = 1;
  for (const char* part :
       {"about", "bars", "default_forms", "gates", "windows", "call_cost", "growth", "refused", "sources"}) {
    make_hostile(report[part]);
  }
  const std::string page = report_page(report);
  std::size_t scripts = 0;
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 3u) << "the plots' data and the page's own two";
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x"));
}

TEST_F(Report, ThePageNeedsNoNetworkAndShowsEveryPart) {
  add_op_gate("vector");
  add_window(1.5, "faster");
  add_call_cost();
  add_growth("not growing");
  const std::string page = report_page(make());
  for (const char* id :
       {"summary", "forms", "gates", "windows", "call-cost", "growth", "refused", "sources", "reading"}) {
    EXPECT_THAT(page, HasSubstr("<section id=\"" + std::string(id) + "\""));
    EXPECT_THAT(page, HasSubstr("<a href=\"#" + std::string(id) + "\""));
  }
  for (const char* outside : {"src=\"", "href=\"http", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(page, HasSubstr("1.500× [1.425, 1.575]"));
}

}  // namespace
}  // namespace assay::lab
