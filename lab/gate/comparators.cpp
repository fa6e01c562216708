#include "lab/gate/comparators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "lab/gate/measures.hpp"

namespace assay::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kFailuresShown = 5;  // of each kind
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string fraction(std::size_t part, std::size_t whole) {
  return fmt::format("{}/{}", part, whole);
}

/// Failures by kind: the first few in words, the rest counted.
class Failures {
 public:
  void add(const std::string& kind, std::string text) {
    auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& k) { return k.name == kind; });
    if (found == kinds_.end()) found = kinds_.insert(kinds_.end(), {kind, {}, 0});
    if (++found->count <= kFailuresShown) found->texts.push_back(std::move(text));
  }
  std::vector<std::string> list() const {
    std::vector<std::string> all;
    for (const Kind& kind : kinds_) {
      all.insert(all.end(), kind.texts.begin(), kind.texts.end());
      if (kind.count > kFailuresShown) {
        all.push_back(fmt::format("and {} more like it", kind.count - kFailuresShown));
      }
    }
    return all;
  }

 private:
  struct Kind {
    std::string name;
    std::vector<std::string> texts;
    std::size_t count;
  };
  std::vector<Kind> kinds_;
};

/// Calls body(place, x, y) for each pair of arrays that can be compared; the others are failures.
template <class Body>
void for_each_pair(const std::string& case_name, const Answer& expected, const Answer& found,
                   Failures& failures, const Body& body) {
  if (expected.arrays.size() != found.arrays.size()) {
    failures.add("arrays", fmt::format("{}: {} arrays, the oracle has {}", case_name, found.arrays.size(),
                                       expected.arrays.size()));
  }
  for (std::size_t i = 0; i < std::min(expected.arrays.size(), found.arrays.size()); ++i) {
    const Array& x = expected.arrays[i];
    const Array& y = found.arrays[i];
    const std::string place = case_name + "." + x.name;
    if (x.name != y.name || x.shape != y.shape || value_count(x.values) != value_count(y.values)) {
      failures.add("shape", fmt::format("{}: {} [{}], the oracle has [{}]", place, y.name,
                                        fmt::join(y.shape, ", "), fmt::join(x.shape, ", ")));
    } else {
      body(place, x, y);
    }
  }
}

void note_input(const std::string& place, const Array& y, Failures& failures) {
  if (!y.input_difference.empty()) failures.add("input", place + ": " + y.input_difference);
}

class DecisionComparator final : public Comparator {
 public:
  explicit DecisionComparator(const DecisionBar& bar) : bar_(bar) {}

  void add(const std::string& case_name, const Answer& expected, const Answer& found) override {
    for_each_pair(case_name, expected, found, failures_,
                  [&](const auto& place, const Array& x, const Array& y) {
                    rows_.push_back(compare_row(place, as_doubles(x.values), as_doubles(y.values), bar_));
                    rows_.back().token_difference = y.input_difference;
                  });
  }

  Verdict verdict() const override {
    const DecisionVerdict found = judge(rows_, bar_);
    Verdict verdict{.failures = failures_.list(), .measures = {}, .columns = {}};
    verdict.failures.insert(verdict.failures.end(), found.failures.begin(), found.failures.end());
    verdict.measures = {{"rows", found.rows},
                        {"argmax_off_near_ties", fraction(found.decided_agreeing, found.decided)},
                        {"near_ties_agreeing", fraction(found.near_ties_agreeing, found.near_ties)},
                        {"rows_with_same_tokens", found.rows_with_same_tokens},
                        {"max_abs_dp", found.max_delta},
                        {"worst_row", found.worst_row},
                        {"mean_of_row_mean_abs_dp", found.mean_of_row_means},
                        {"finite", found.finite}};
    verdict.columns = {{"rows", std::to_string(found.rows)},
                       {"argmax off near ties", fraction(found.decided_agreeing, found.decided)},
                       {"near ties agreeing", fraction(found.near_ties_agreeing, found.near_ties)},
                       {"max |Δp|", fmt::format("{:.3g}", found.max_delta)},
                       {"mean |Δp|", fmt::format("{:.3g}", found.mean_of_row_means)},
                       {"finite", found.finite ? "yes" : "no"}};
    return verdict;
  }

 private:
  static std::vector<double> as_doubles(const Values& values) {
    std::vector<double> result(value_count(values));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = value_at(values, i);
    return result;
  }

  DecisionBar bar_;
  std::vector<RowComparison> rows_;
  Failures failures_;
};

class BitIdentityComparator final : public Comparator {
 public:
  void add(const std::string& case_name, const Answer& expected, const Answer& found) override {
    for_each_pair(
        case_name, expected, found, failures_, [&](const auto& place, const Array& x, const Array& y) {
          note_input(place, y, failures_);
          if (x.values.index() != y.values.index()) {
            failures_.add("type", fmt::format("{}: values of another type than the oracle's", place));
            return;
          }
          std::visit(
              [&](const auto& list) {
                compare(place, list, std::get<std::decay_t<decltype(list)>>(y.values));
              },
              x.values);
        });
  }

  Verdict verdict() const override {
    Verdict verdict{.failures = failures_.list(), .measures = {}, .columns = {}};
    if (words_ == 0) verdict.failures.emplace_back("no values compared");
    verdict.measures = {{"words", words_}, {"different", different_}, {"first_mismatch", nullptr}};
    if (!first_.empty()) verdict.measures["first_mismatch"] = first_;
    verdict.columns = {{"words", std::to_string(words_)},
                       {"different", std::to_string(different_)},
                       {"first mismatch", first_.empty() ? "none" : first_}};
    return verdict;
  }

 private:
  template <class T>
  void compare(const std::string& place, const std::vector<T>& x, const std::vector<T>& y) {
    using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    std::size_t different = 0;
    std::string first;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto a = std::bit_cast<Word>(x[i]), b = std::bit_cast<Word>(y[i]);
      if (a != b && ++different == 1) {
        first = fmt::format("{}[{}]: {:#x} ({}), the oracle has {:#x} ({})", place, i, b, y[i], a, x[i]);
      }
    }
    words_ += x.size();
    different_ += different;
    if (different == 0) return;
    if (first_.empty()) first_ = first;
    failures_.add("words", fmt::format("{}; {} of {} words differ", first, different, x.size()));
  }

  std::size_t words_ = 0;
  std::size_t different_ = 0;
  std::string first_;
  Failures failures_;
};

std::string in_words(double value) {
  return std::isnan(value) ? "undefined" : fmt::format("{:.3g}", value);
}

/// The worst of one measure over all arrays, and where.
class Worst {
 public:
  enum class Limit { at_most, at_least };
  Worst(std::string name, Limit limit, std::optional<double> threshold)
      : name_(std::move(name)), limit_(limit), threshold_(threshold) {}

  void add(const std::string& place, double value, Failures& failures) {
    // Undefined is worse than any number.
    const bool worse =
        place_.empty() || std::isnan(value) || (limit_ == Limit::at_most ? value > value_ : value < value_);
    if (worse && !std::isnan(value_)) {
      value_ = value;
      place_ = place;
    }
    if (!threshold_ || meets(value)) return;
    failures.add(name_, fmt::format("{}: {} {}, the bar is {} {:.3g}", place, name_, in_words(value),
                                    limit_ == Limit::at_most ? "at most" : "at least", *threshold_));
  }
  double value() const { return value_; }
  const std::string& name() const { return name_; }
  const std::string& place() const { return place_; }

 private:
  bool meets(double value) const {
    return limit_ == Limit::at_most ? value <= *threshold_ : value >= *threshold_;
  }
  std::string name_;
  Limit limit_;
  std::optional<double> threshold_;
  double value_ = 0;
  std::string place_;
};

class NumericComparator : public Comparator {
 public:
  explicit NumericComparator(const NumericBar& bar)
      : collapsed_allowed_(bar.collapsed),
        nrmse_("nrmse", Worst::Limit::at_most, bar.nrmse),
        snr_("snr_db", Worst::Limit::at_least, bar.snr_db),
        pearson_("pearson", Worst::Limit::at_least, bar.pearson),
        max_abs_("max_abs", Worst::Limit::at_most, bar.max_abs) {}

  void add(const std::string& case_name, const Answer& expected, const Answer& found) override {
    for_each_pair(case_name, expected, found, failures_,
                  [&](const auto& place, const Array& x, const Array& y) {
                    note_input(place, y, failures_);
                    compare(place, x, y);
                  });
  }

  Verdict verdict() const override {
    Verdict verdict{.failures = failures_.list(), .measures = {}, .columns = {}};
    if (values_ == 0) verdict.failures.emplace_back("no values compared");
    if (collapsed_ > collapsed_allowed_) {
      verdict.failures.push_back(
          fmt::format("{} values collapsed to zero, first in {}; the bar is at most {}", collapsed_,
                      collapsed_in_, collapsed_allowed_));
    }
    verdict.measures = {{"arrays", arrays_}, {"values", values_}};
    for (const Worst* worst : {&nrmse_, &snr_, &pearson_, &max_abs_}) write(*worst, verdict);
    verdict.measures["collapsed"] = collapsed_;
    verdict.measures["non_finite"] = non_finite_;
    verdict.columns.insert(verdict.columns.begin(), {"values", std::to_string(values_)});
    verdict.columns.emplace_back("collapsed", std::to_string(collapsed_));
    verdict.columns.emplace_back("non-finite", std::to_string(non_finite_));
    return verdict;
  }

 protected:
  virtual void compare(const std::string& place, const Array& x, const Array& y) {
    add_measures(place, measure(x.values, y.values));
  }

  void add_measures(const std::string& place, const NumericMeasures& measures) {
    ++arrays_;
    values_ += measures.values;
    nrmse_.add(place, measures.nrmse, failures_);
    snr_.add(place, measures.snr_db, failures_);
    pearson_.add(place, measures.pearson.value_or(std::nan("")), failures_);
    max_abs_.add(place, measures.max_abs, failures_);
    if (measures.collapsed > 0 && collapsed_ == 0) collapsed_in_ = place;
    collapsed_ += measures.collapsed;
    non_finite_ += measures.non_finite;
    if (measures.non_finite > 0) {
      failures_.add("finite", fmt::format("{}: {} of {} values are not finite where the oracle's are", place,
                                          measures.non_finite, measures.values));
    }
  }

  static void write(const Worst& worst, Verdict& verdict) {
    verdict.measures[worst.name()] = json_number(worst.value());
    verdict.measures[worst.name() + "_in"] = worst.place();
    verdict.columns.emplace_back(worst.name(), in_words(worst.value()));
  }

  Failures failures_;

 private:
  std::uint64_t collapsed_allowed_;
  std::size_t arrays_ = 0;
  std::size_t values_ = 0;
  std::size_t collapsed_ = 0;
  std::size_t non_finite_ = 0;
  std::string collapsed_in_;
  Worst nrmse_, snr_, pearson_, max_abs_;
};

class AudioComparator final : public NumericComparator {
 public:
  explicit AudioComparator(const AudioBar& bar)
      : NumericComparator(bar.whole),
        second_("nrmse_per_second", Worst::Limit::at_most, bar.nrmse_per_second),
        peak_("peak_difference", Worst::Limit::at_most, bar.peak_difference),
        rms_("rms_difference", Worst::Limit::at_most, bar.rms_difference),
        spectral_("log_spectral_db", Worst::Limit::at_most, bar.log_spectral_db) {}

  Verdict verdict() const override {
    Verdict verdict = NumericComparator::verdict();
    for (const Worst* worst : {&second_, &peak_, &rms_, &spectral_}) write(*worst, verdict);
    if (sounds_ == 0) {
      verdict.failures.push_back("no array has a sample rate, so nothing was judged as sound");
    }
    verdict.measures["arrays_by_name"] = by_name_;
    return verdict;
  }

 private:
  void compare(const std::string& place, const Array& x, const Array& y) override {
    // A run's earlier stages (latents, conditions) are numbers without a rate.
    if (x.sample_rate == 0 && y.sample_rate == 0) {
      const NumericMeasures measures = measure(x.values, y.values);
      add_measures(place, measures);
      by_name_[place] = to_json(measures);
      return;
    }
    ++sounds_;
    if (!(x.sample_rate > 0) || x.sample_rate != y.sample_rate || x.shape.empty()) {
      failures_.add("rate", fmt::format("{}: {} samples a second, the oracle has {}", place, y.sample_rate,
                                        x.sample_rate));
      return;
    }
    const AudioMeasures measures = measure_audio(x, y);
    add_measures(place, measures.whole);
    for (std::size_t s = 0; s < measures.nrmse_per_second.size(); ++s) {
      second_.add(fmt::format("{}, second {}", place, s), measures.nrmse_per_second[s], failures_);
    }
    peak_.add(place, measures.peak_difference, failures_);
    rms_.add(place, measures.rms_difference, failures_);
    spectral_.add(place, measures.log_spectral_db, failures_);
    by_name_[place] = to_json(measures);
  }

  Worst second_, peak_, rms_, spectral_;
  std::size_t sounds_ = 0;
  Json by_name_ = Json::object();
};

/// A threshold: absent, or a number of at least 0.
std::optional<double> threshold(JsonReader& reader, const std::string& name, double largest = kInfinity) {
  const auto value = reader.optional<double>(name);
  if (!value || (*value >= 0 && *value <= largest)) return value;
  throw Error(ErrorKind::malformed,
              {.where = reader.where(name),
               .found = fmt::format("{}", *value),
               .expected = std::isfinite(largest) ? fmt::format("a threshold from 0 to {}", largest)
                                                  : "a threshold of at least 0"});
}

double required_threshold(JsonReader& reader, const std::string& name) {
  reader.required<double>(name);
  return *threshold(reader, name);
}

NumericBar read_numeric(JsonReader& reader) {
  NumericBar bar;
  bar.nrmse = threshold(reader, "nrmse");
  bar.snr_db = threshold(reader, "snr_db");
  bar.pearson = threshold(reader, "pearson", 1);
  bar.max_abs = threshold(reader, "max_abs");
  bar.collapsed = reader.optional<std::uint64_t>("collapsed").value_or(0);
  return bar;
}

bool empty(const NumericBar& bar) {
  return !bar.nrmse && !bar.snr_db && !bar.pearson && !bar.max_abs;
}

bool empty(const AudioBar& bar) {
  return empty(bar.whole) && !bar.nrmse_per_second && !bar.peak_difference && !bar.rms_difference &&
         !bar.log_spectral_db;
}

AudioBar read_audio(JsonReader& reader) {
  AudioBar bar{.whole = read_numeric(reader)};
  bar.nrmse_per_second = threshold(reader, "nrmse_per_second");
  bar.peak_difference = threshold(reader, "peak_difference");
  bar.rms_difference = threshold(reader, "rms_difference");
  bar.log_spectral_db = threshold(reader, "log_spectral_db");
  return bar;
}

DecisionBar read_decisions(JsonReader& reader) {
  return {.near_tie = required_threshold(reader, "near_tie_margin"),
          .max_delta = required_threshold(reader, "max_abs_dp"),
          .mean_delta = required_threshold(reader, "mean_of_row_mean_abs_dp")};
}

template <class SomeBar>
SomeBar finished(JsonReader& reader, const SomeBar& bar) {
  reader.finish();
  if (!empty(bar)) return bar;
  throw Error(
      ErrorKind::malformed,
      {.where = reader.where(), .found = "no threshold that a run could miss", .expected = "one or more"});
}

void put(Json& json, const char* name, const std::optional<double>& value) {
  if (value) json[name] = *value;
}

Json numeric_json(const NumericBar& bar) {
  Json json = Json::object();
  put(json, "nrmse", bar.nrmse);
  put(json, "snr_db", bar.snr_db);
  put(json, "pearson", bar.pearson);
  put(json, "max_abs", bar.max_abs);
  json["collapsed"] = bar.collapsed;
  return json;
}

struct BarJson {
  Json operator()(const DecisionBar& bar) const {
    return {{"near_tie_margin", bar.near_tie},
            {"max_abs_dp", bar.max_delta},
            {"mean_of_row_mean_abs_dp", bar.mean_delta}};
  }
  Json operator()(const BitIdentityBar&) const { return Json::object(); }
  Json operator()(const NumericBar& bar) const { return numeric_json(bar); }
  Json operator()(const AudioBar& bar) const {
    Json json = numeric_json(bar.whole);
    put(json, "nrmse_per_second", bar.nrmse_per_second);
    put(json, "peak_difference", bar.peak_difference);
    put(json, "rms_difference", bar.rms_difference);
    put(json, "log_spectral_db", bar.log_spectral_db);
    return json;
  }
};

struct MakeComparator {
  using Pointer = std::unique_ptr<Comparator>;
  Pointer operator()(const DecisionBar& bar) const { return std::make_unique<DecisionComparator>(bar); }
  Pointer operator()(const BitIdentityBar&) const { return std::make_unique<BitIdentityComparator>(); }
  Pointer operator()(const NumericBar& bar) const { return std::make_unique<NumericComparator>(bar); }
  Pointer operator()(const AudioBar& bar) const { return std::make_unique<AudioComparator>(bar); }
};

constexpr std::array<std::string_view, 4> kNames{"decisions", "bit_identity", "numeric", "audio"};

}  // namespace

std::string_view comparator_name(const Bar& bar) {
  return kNames[bar.index()];
}

Bar read_bar(const std::string& comparator, std::optional<JsonReader> thresholds, const std::string& where) {
  const auto found = std::find(kNames.begin(), kNames.end(), comparator);
  if (found == kNames.end()) {
    throw Error(ErrorKind::malformed, {.where = where + ": comparator",
                                       .found = "\"" + comparator + "\"",
                                       .expected = fmt::format("one of {}", fmt::join(kNames, ", "))});
  }
  if (comparator == "bit_identity") {
    if (thresholds) thresholds->finish();
    return BitIdentityBar{};
  }
  if (!thresholds) {
    throw Error(ErrorKind::malformed,
                {.where = where, .found = "no field 'thresholds'", .expected = "that field"});
  }
  if (comparator == "numeric") return finished(*thresholds, read_numeric(*thresholds));
  if (comparator == "audio") return finished(*thresholds, read_audio(*thresholds));
  const DecisionBar bar = read_decisions(*thresholds);
  thresholds->finish();
  return bar;
}

Json to_json(const Bar& bar) {
  return std::visit(BarJson{}, bar);
}

std::unique_ptr<Comparator> make_comparator(const Bar& bar) {
  return std::visit(MakeComparator{}, bar);
}

}  // namespace assay::lab
