#include "audio/sound_reader.hpp"

#include <sndfile.h>
#include <soxr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"

namespace assay::audio {
namespace {

constexpr std::size_t kBlockFrames = std::size_t{1} << 15;

struct CloseDecoder {
  void operator()(SNDFILE* sound) const { sf_close(sound); }
};
using Decoder = std::unique_ptr<SNDFILE, CloseDecoder>;

[[noreturn]] void fail_sound(ErrorKind kind, const std::filesystem::path& file, std::string found,
                             std::string expected, std::string advice = {}) {
  throw Error(kind, {.where = file.string(),
                     .found = std::move(found),
                     .expected = std::move(expected),
                     .advice = std::move(advice)});
}

/// libsndfile takes a WAV file that ends early for a shorter one; its header knows better. A size of 0 or of
/// all ones is what a program writes that could not go back to it.
void check_riff_is_whole(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  constexpr std::size_t kHeader = 12;
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), "RIFF", 4) != 0) return;
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 4, sizeof(size));
  if (size == 0 || size == 0xffffffffu || std::uint64_t{size} + 8 <= bytes.size()) return;
  fail_sound(ErrorKind::malformed, file, fmt::format("{} bytes", bytes.size()),
             fmt::format("{} by its header", std::uint64_t{size} + 8), "the file is truncated");
}

/// The file's bytes as libsndfile reads them. A mapping cannot block, as a pipe would.
struct MemorySound {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
};

MemorySound& memory_of(void* user) {
  return *static_cast<MemorySound*>(user);
}

SF_VIRTUAL_IO memory_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) { return static_cast<sf_count_t>(memory_of(user).bytes.size()); };
  io.seek = [](sf_count_t offset, int whence, void* user) -> sf_count_t {
    MemorySound& memory = memory_of(user);
    const auto size = static_cast<sf_count_t>(memory.bytes.size());
    const sf_count_t base = whence == SEEK_SET   ? 0
                            : whence == SEEK_END ? size
                                                 : static_cast<sf_count_t>(memory.at);
    memory.at = static_cast<std::size_t>(std::clamp<sf_count_t>(base + offset, 0, size));
    return static_cast<sf_count_t>(memory.at);
  };
  io.read = [](void* data, sf_count_t count, void* user) -> sf_count_t {
    MemorySound& memory = memory_of(user);
    const std::size_t got = std::min(static_cast<std::size_t>(count), memory.bytes.size() - memory.at);
    if (got == 0) return 0;  // an empty file has no bytes to point at
    std::memcpy(data, memory.bytes.data() + memory.at, got);
    memory.at += got;
    return static_cast<sf_count_t>(got);
  };
  io.write = [](const void*, sf_count_t, void*) -> sf_count_t { return 0; };
  io.tell = [](void* user) { return static_cast<sf_count_t>(memory_of(user).at); };
  return io;
}

void check_info(const std::filesystem::path& file, const SF_INFO& info) {
  constexpr int kLeastRate = 4000;
  constexpr int kMostRate = 768000;
  if (info.channels < 1 || info.channels > 2) {
    fail_sound(ErrorKind::unsupported, file, fmt::format("{} channels", info.channels), "one or two",
               "fold it down to stereo first");
  }
  if (info.samplerate < kLeastRate || info.samplerate > kMostRate) {
    fail_sound(ErrorKind::unsupported, file, fmt::format("{} samples a second", info.samplerate),
               fmt::format("{} to {}", kLeastRate, kMostRate));
  }
  const double seconds = static_cast<double>(info.frames) / info.samplerate;
  if (info.frames < 0 || seconds > kLongestSeconds) {
    fail_sound(ErrorKind::limit_exceeded, file, fmt::format("{:.1f} s", seconds),
               fmt::format("at most {} s", kLongestSeconds), "cut it first");
  }
}

struct CloseResampler {
  void operator()(soxr* resampler) const { soxr_delete(resampler); }
};

/// Stereo frames of a file's rate in, frames at 48 kHz out, block by block.
class RateConverter {
 public:
  RateConverter(const std::filesystem::path& file, int rate)
      : file_(file), ratio_(static_cast<double>(kSampleRate) / rate) {
    if (static_cast<std::size_t>(rate) == kSampleRate) return;
    soxr_error_t failed = nullptr;
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    resampler_.reset(
        soxr_create(rate, static_cast<double>(kSampleRate), 2, &failed, nullptr, &quality, nullptr));
    check(failed);
  }

  void append(std::span<const float> stereo, std::vector<float>& samples) {
    if (resampler_ == nullptr) {
      samples.insert(samples.end(), stereo.begin(), stereo.end());
      return;
    }
    frames_ += stereo.size() / 2;
    while (!stereo.empty()) stereo = stereo.subspan(2 * convert(stereo.data(), stereo.size() / 2, samples));
  }

  /// What the filter still holds; as long as the sound lasts, and no longer.
  void finish(std::vector<float>& samples) {
    if (resampler_ == nullptr) return;
    std::size_t before = 0;
    do {
      before = samples.size();
      convert(nullptr, 0, samples);
    } while (samples.size() > before);
    const auto frames = static_cast<std::size_t>(std::llround(static_cast<double>(frames_) * ratio_));
    samples.resize(std::min(samples.size(), 2 * frames));
  }

 private:
  /// Returns the frames that were taken; null ends the input.
  std::size_t convert(const float* stereo, std::size_t frames, std::vector<float>& samples) {
    std::size_t taken = 0;
    std::size_t made = 0;
    const std::size_t room = out_.size() / 2;
    check(soxr_process(resampler_.get(), stereo, frames, &taken, out_.data(), room, &made));
    samples.insert(samples.end(), out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(2 * made));
    return taken;
  }

  void check(soxr_error_t failed) const {
    if (failed == nullptr) return;
    fail_sound(ErrorKind::io, file_, std::string("cannot be resampled: ") + failed, "48000 samples a second");
  }

  const std::filesystem::path& file_;
  double ratio_;
  std::unique_ptr<soxr, CloseResampler> resampler_;
  std::vector<float> out_ = std::vector<float>(2 * kBlockFrames);
  std::size_t frames_ = 0;
};

void check_finite(const std::filesystem::path& file, std::span<const float> samples, std::size_t first,
                  const SF_INFO& info) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (std::isfinite(samples[i])) continue;
    const double second = static_cast<double>(first + i) / info.channels / info.samplerate;
    fail_sound(ErrorKind::non_finite, file, fmt::format("{} at {:.3f} s", samples[i], second),
               "finite samples");
  }
}

/// `samples` of one channel or two as pairs.
std::span<const float> as_stereo(std::span<const float> samples, int channels, std::vector<float>& pairs) {
  if (channels == 2) return samples;
  pairs.resize(2 * samples.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = samples[i / 2];
  return pairs;
}

/// Block by block: memory is of what the file holds, not of what its header promises.
std::vector<float> read_all_frames(const std::filesystem::path& file, SNDFILE* decoder, const SF_INFO& info) {
  const auto channels = static_cast<std::size_t>(info.channels);
  const auto frames = static_cast<std::size_t>(info.frames);
  RateConverter converter(file, info.samplerate);
  std::vector<float> block(kBlockFrames * channels);
  std::vector<float> pairs;
  std::vector<float> samples;
  for (std::size_t done = 0; done < frames;) {
    const auto wanted = static_cast<sf_count_t>(std::min(kBlockFrames, frames - done));
    const sf_count_t got = sf_readf_float(decoder, block.data(), wanted);
    if (got <= 0) {
      fail_sound(ErrorKind::malformed, file, fmt::format("{} samples", done),
                 fmt::format("{} by its header", frames), "the file is truncated or damaged");
    }
    const auto read = std::span<const float>(block).first(static_cast<std::size_t>(got) * channels);
    check_finite(file, read, done * channels, info);
    converter.append(as_stereo(read, info.channels, pairs), samples);
    done += static_cast<std::size_t>(got);
  }
  converter.finish(samples);
  return samples;
}

}  // namespace

Sound parse_sound(std::span<const std::byte> bytes, const std::filesystem::path& file) {
  check_riff_is_whole(file, bytes);
  MemorySound memory{bytes};
  SF_VIRTUAL_IO io = memory_io();
  SF_INFO info{};
  const Decoder decoder(sf_open_virtual(&io, SFM_READ, &info, &memory));
  if (decoder == nullptr) {
    fail_sound(ErrorKind::malformed, file, std::string("no sound file: ") + sf_strerror(nullptr),
               "WAV, FLAC, MP3 or another that libsndfile reads");
  }
  check_info(file, info);
  if (info.frames == 0) fail_sound(ErrorKind::malformed, file, "no samples", "some sound");
  return {read_all_frames(file, decoder.get(), info)};
}

Sound read_sound(const std::filesystem::path& file) {
  const MappedFile mapping = MappedFile::open(file);
  return parse_sound(mapping.bytes(), file);
}

}  // namespace assay::audio
