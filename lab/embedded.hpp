#pragma once

#include <string_view>

/// Files of the source tree that the program carries with it.
namespace assay::lab::embedded {

extern const std::string_view kExperimentSchema;  ///< ledger/schema/experiment.schema.json
extern const std::string_view kPageStyle;         ///< lab/html/page.css
extern const std::string_view kLedgerStyle;       ///< lab/ledger/ledger.css
extern const std::string_view kLedgerScript;      ///< lab/ledger/ledger.js
extern const std::string_view kReportStyle;       ///< lab/report/report.css
extern const std::string_view kReportScript;      ///< lab/report/report.js
extern const std::string_view kPlotScript;        ///< third_party/uplot/uPlot.iife.min.js
extern const std::string_view kPlotStyle;         ///< third_party/uplot/uPlot.min.css
extern const std::string_view kPlotLicence;       ///< third_party/uplot/LICENSE

}  // namespace assay::lab::embedded
