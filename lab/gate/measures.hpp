#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/gate/subject.hpp"

/// What two arrays of numbers differ by. x is the oracle's value, y the subject's, all sums in double.
///
/// Values that are not finite. Where x is NaN or infinite, y agrees if it is NaN too, or the same infinity;
/// elsewhere a NaN or infinity in y is wrong. Each wrong place counts in `non_finite`; no place with a value
/// that is not finite enters any other measure.
namespace assay::lab {

struct NumericMeasures {
  std::size_t values = 0;
  std::size_t non_finite = 0;  ///< places where y is not finite and x is, or not as x is
  /// Values lost: y is 0 where |x| is above 2⁻²⁴ of the array's largest |x|. Flushing what the array's own
  /// scale cannot show in fp32 is no loss (benchdnn checks the share of zeros for the same reason: oneDNN,
  /// tests/benchdnn/doc/knobs_common.md).
  std::size_t collapsed = 0;
  double nrmse = 0;  ///< √(Σ(y − x)² / Σx²); 0 where all are equal, infinite where x is all zeros and y not
  double snr_db = 0;  ///< 10·log₁₀(Σx² / Σ(y − x)²) = −20·log₁₀(nrmse); infinite where all are equal
  double max_abs = 0;     ///< max |y − x|
  std::size_t worst = 0;  ///< where max_abs is
  /// Pearson's correlation coefficient. 1 where all are equal; none where one is constant and they differ,
  /// for then it is undefined.
  std::optional<double> pearson = {};
};

/// Sizes are equal. No values: nothing differs.
NumericMeasures measure(const Values& x, const Values& y);

/// The same over [first, first + count).
NumericMeasures measure(const Values& x, const Values& y, std::size_t first, std::size_t count);

struct AudioMeasures {
  std::size_t channels = 0;
  std::size_t samples = 0;  ///< of a channel
  NumericMeasures whole;
  /// Of each second of sound, all channels together; the last may be shorter. A second in which x is silent
  /// and y is not has infinite NRMSE.
  std::vector<double> nrmse_per_second;
  double peak = 0;             ///< max |x|
  double peak_difference = 0;  ///< | max |y| − max |x| |
  double rms = 0;              ///< √(Σx² / n)
  double rms_difference = 0;   ///< | RMS(y) − RMS(x) |
  double log_spectral_db = 0;  ///< see log_spectral_distance; mean over frames and channels
};

/// x and y are [channels, samples] or [samples] in one shape, of a sample rate above 0 (the caller has
/// checked it). Sample values are in full scale ±1.
AudioMeasures measure_audio(const Array& x, const Array& y);

/// Log-spectral distance in dB of one channel, mean over frames of √(mean over bins of (10·log₁₀(P_x /
/// P_y))²) (A. H. Gray, J. D. Markel, "Distance measures for speech processing", IEEE Transactions on
/// Acoustics, Speech and Signal Processing 24(5), 1976, the L₂ measure). Frames of 1024 samples every 512
/// under a Hann window, the last filled up with zeros; P is floored at 1e-10 of a full-scale sine's, so that
/// silence against silence is 0 and against sound is finite. No samples: 0. Values that are not finite count
/// as 0.
double log_spectral_distance(const std::vector<double>& x, const std::vector<double>& y);

/// A measure as JSON, which has no infinity: the strings "infinity" and "-infinity" stand for those, null for
/// what is undefined (NaN).
nlohmann::ordered_json json_number(double value);

nlohmann::ordered_json to_json(const NumericMeasures& measures);
nlohmann::ordered_json to_json(const AudioMeasures& measures);

}  // namespace assay::lab
