#include "audio/sound_spool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace assay::audio {
namespace {

constexpr double kSamplesPerSecond = 96000;  // of both channels

[[noreturn]] void fail_spool(const std::filesystem::path& folder, int code) {
  throw Error(
      code == ENOENT ? ErrorKind::missing : ErrorKind::io,
      {.where = folder.string(),
       .found = std::string("no place for the decoded samples: ") + std::strerror(code),
       .advice = code == ENOSPC || code == EFBIG ? "make room, or write elsewhere; nothing was left behind"
                 : code == ENOENT                ? "make the folder first"
                                                 : ""});
}

}  // namespace

Loudness loudness_of(float peak) {
  const float divisor = peak > 1.0f ? peak : 1.0f;
  const auto target = static_cast<float>(std::pow(10.0, -1.0 / 20.0));
  constexpr float kLeastPeak = 1e-6f;
  return {divisor, target / std::max(peak / divisor, kLeastPeak)};
}

SoundSpool::SoundSpool(const std::filesystem::path& folder) : folder_(folder.empty() ? "." : folder) {
  // Not all file systems make files without a name; there the name goes at once.
  file_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ >= 0) return;
  std::string name = (folder_ / ".assay-samples.XXXXXX").string();
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) fail_spool(folder_, errno);
  ::unlink(name.c_str());
}

SoundSpool::~SoundSpool() {
  ::close(file_);
}

void SoundSpool::append(std::span<const float> samples) {
  float peak = peak_;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i])) {
      throw Error(ErrorKind::non_finite,
                  {.where = "the decoded song",
                   .found = fmt::format("{} at {:.3f} s", samples[i],
                                        static_cast<double>(samples_ + i) / kSamplesPerSecond),
                   .expected = "finite samples",
                   .advice = "run with --precision fp32; if that fails too, the checkpoint is damaged"});
    }
    peak = std::max(peak, std::abs(samples[i]));
  }
  const auto bytes = std::as_bytes(samples);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_spool(folder_, errno);
    done += static_cast<std::size_t>(written);
  }
  peak_ = peak;
  samples_ += samples.size();
}

void SoundSpool::read(std::size_t first, std::span<float> out) const {
  const auto bytes = std::as_writable_bytes(out);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto at = static_cast<off_t>(first * sizeof(float) + done);
    const ssize_t got = ::pread(file_, bytes.data() + done, bytes.size() - done, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_spool(folder_, got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace assay::audio
