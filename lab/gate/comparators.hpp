#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/gate/decisions.hpp"
#include "lab/gate/subject.hpp"
#include "lab/json_reader.hpp"

/// Comparators hold a subject's answers against the oracle's, case by case, and come to a verdict by frozen
/// thresholds. A threshold is met by a value that is exactly at it. A value that is undefined or infinite
/// meets no upper threshold. Whatever the thresholds, a verdict fails where no value was compared, an array
/// is missing or of another shape, or a value is not finite where the oracle's is.
namespace assay::lab {

/// "bit_identity": the same words, in the oracle's type. It has no thresholds. NaNs compare by their bits
/// too.
struct BitIdentityBar {};

/// "numeric": of every array by itself (see NumericMeasures); the worst array decides.
struct NumericBar {
  std::optional<double> nrmse = {};    ///< at most
  std::optional<double> snr_db = {};   ///< at least
  std::optional<double> pearson = {};  ///< at least; an undefined coefficient does not meet it
  std::optional<double> max_abs = {};  ///< at most
  std::uint64_t collapsed = 0;         ///< at most, over all arrays together
};

/// "audio": of every array by itself (see AudioMeasures), each of which has a sample rate.
struct AudioBar {
  NumericBar whole;
  std::optional<double> nrmse_per_second = {};  ///< at most, in the worst second
  std::optional<double> peak_difference = {};   ///< at most
  std::optional<double> rms_difference = {};    ///< at most
  std::optional<double> log_spectral_db = {};   ///< at most
};

using Bar = std::variant<DecisionBar, BitIdentityBar, NumericBar, AudioBar>;

std::string_view comparator_name(const Bar& bar);

/// Reads the bar of the comparator of that name. Decisions need all of "near_tie_margin", "max_abs_dp" and
/// "mean_of_row_mean_abs_dp"; numeric and audio need one threshold or more; bit identity takes none.
/// Throws Error(malformed) naming file and field for a comparator that there is none of, a threshold that is
/// unknown, absent, negative or not finite, a Pearson coefficient above 1.
Bar read_bar(const std::string& comparator, std::optional<JsonReader> thresholds, const std::string& where);

nlohmann::ordered_json to_json(const Bar& bar);

struct Verdict {
  std::vector<std::string> failures;  ///< what was not met and where; the first few of each kind
  nlohmann::ordered_json measures;    ///< finite numbers only; see json_number
  /// What a table shows of it, as pairs of a heading and a cell.
  std::vector<std::pair<std::string, std::string>> columns;
  bool pass() const { return failures.empty(); }
};

class Comparator {
 public:
  virtual ~Comparator() = default;
  virtual void add(const std::string& case_name, const Answer& expected, const Answer& found) = 0;
  virtual Verdict verdict() const = 0;
};

std::unique_ptr<Comparator> make_comparator(const Bar& bar);

}  // namespace assay::lab
