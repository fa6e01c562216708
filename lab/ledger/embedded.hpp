#pragma once

#include <string_view>

/// Files of the source tree that the program carries with it.
namespace assay::lab::embedded {

extern const std::string_view kExperimentSchema;  ///< ledger/schema/experiment.schema.json
extern const std::string_view kLedgerPage;        ///< lab/ledger/page.html

}  // namespace assay::lab::embedded
