#include "audio/sound_reader.hpp"

#include <sndfile.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "audio/tests/sounds.hpp"
#include "base/file.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::audio {
namespace {

TEST(SoundReader, MonoBecomesTwoEqualChannels) {
  const TemporaryDirectory directory;
  const std::vector<float> mono = sine(4800, 1, 48000, 300, 0.5f);
  write_plain(directory / "mono.wav", mono, 1, 48000, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  const Sound sound = read_sound(directory / "mono.wav");
  ASSERT_EQ(sound.frames(), 4800u);
  for (std::size_t i = 0; i < mono.size(); ++i) {
    ASSERT_EQ(sound.samples[2 * i], mono[i]);
    ASSERT_EQ(sound.samples[2 * i + 1], mono[i]);
  }
}

TEST(SoundReader, OtherRatesAndWidthsComeToTheSameTone) {
  struct Case {
    int rate;
    int format;
    double tolerance;
  };
  const TemporaryDirectory directory;
  for (const Case& c : {Case{8000, SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 0.02},
                        Case{44100, SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1e-3},
                        Case{192000, SF_FORMAT_WAV | SF_FORMAT_PCM_24, 1e-3},
                        Case{48000, SF_FORMAT_AIFF | SF_FORMAT_PCM_32, 1e-6}}) {
    const auto frames = static_cast<std::size_t>(c.rate);
    write_plain(directory / "tone", sine(frames, 2, c.rate, 440, 0.5f), 2, c.rate, c.format);
    const Sound sound = read_sound(directory / "tone");
    ASSERT_EQ(sound.frames(), 48000u) << c.rate;
    const std::vector<float> expected = sine(48000, 2, 48000, 440, 0.5f);
    // The filter rings in and out at the ends.
    for (std::size_t i = 4800; i < 2 * 48000 - 4800; ++i) {
      ASSERT_NEAR(sound.samples[i], expected[i], c.tolerance) << c.rate << ' ' << i;
    }
  }
}

TEST(SoundReader, RefusesWhatIsNoWholeSound) {
  const TemporaryDirectory directory;
  const auto sound_of = [&](const char* name) { return read_sound(directory / name); };
  directory.write("text.wav", "no sound at all, only words");
  directory.write("empty.wav", "");
  expect_error(ErrorKind::malformed, "no sound file", [&] { sound_of("text.wav"); });
  expect_error(ErrorKind::malformed, "no sound file", [&] { sound_of("empty.wav"); });
  expect_error(ErrorKind::missing, "none.wav", [&] { sound_of("none.wav"); });
  const std::vector<float> tone = sine(48000, 2, 48000, 440, 0.5f);
  const std::pair<const char*, int> cut_files[] = {{"cut.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                                                   {"cut.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16}};
  for (const auto& cut : cut_files) {
    write_plain(directory / cut.first, tone, 2, 48000, cut.second);
    const std::string whole = read_text_file(directory / cut.first);
    directory.write(cut.first, whole.substr(0, whole.size() / 2));
    expect_error(ErrorKind::malformed, "truncated", [&] { read_sound(directory / cut.first); });
  }
}

/// The most memory that this process has held, in bytes.
std::size_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

/// A FLAC file of a tenth of a second, rate and length in its header replaced.
std::string flac_that_promises(const TemporaryDirectory& directory, std::uint64_t rate,
                               std::uint64_t frames) {
  write_plain(directory / "short.flac", sine(4800, 2, 48000, 440, 0.5f), 2, 48000,
              SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  std::string flac = read_text_file(directory / "short.flac");
  constexpr std::size_t kRateAndLength = 18;  // in the file: 20 bits of rate, 8 of others, 36 of length
  const std::uint64_t others = static_cast<unsigned char>(flac[kRateAndLength + 2]) & 0x0fu;
  const std::uint64_t high = static_cast<unsigned char>(flac[kRateAndLength + 3]) & 0xf0u;
  const std::uint64_t packed = rate << 44 | others << 40 | high << 32 | frames;
  for (std::size_t i = 0; i < 8; ++i) flac[kRateAndLength + i] = static_cast<char>(packed >> (56 - 8 * i));
  return flac;
}

TEST(SoundReader, APromiseOfAHeaderTakesNoMemory) {
  const TemporaryDirectory directory;
  const std::size_t before = peak_memory();
  struct Promise {
    std::uint64_t rate, seconds;
    ErrorKind kind;
  };
  for (const Promise& promise :
       {Promise{48000, 599, ErrorKind::malformed}, Promise{655350, 599, ErrorKind::malformed},
        Promise{48000, 1'000'000, ErrorKind::limit_exceeded}}) {
    const std::string flac = flac_that_promises(directory, promise.rate, promise.rate * promise.seconds);
    try {
      parse_sound(std::as_bytes(std::span(flac)), "promise.flac");
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), promise.kind) << error.what();
    }
  }
  EXPECT_LT(peak_memory() - before, std::size_t{64} << 20);
}

TEST(SoundReader, BlocksLeaveNoSeam) {
  const TemporaryDirectory directory;
  // Several blocks and a last one that is not whole, at a rate that no block is a multiple of.
  const std::vector<float> tone = sine(100'003, 1, 44100, 440, 0.5f);
  write_plain(directory / "tone.wav", tone, 1, 44100, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  const Sound sound = read_sound(directory / "tone.wav");
  ASSERT_EQ(sound.frames(), static_cast<std::size_t>(std::llround(100'003 * 48000.0 / 44100)));
  const std::vector<float> expected = sine(sound.frames(), 1, 48000, 440, 0.5f);
  for (std::size_t i = 4800; i < expected.size() - 4800; ++i) {
    ASSERT_NEAR(sound.samples[2 * i], expected[i], 1e-5) << i;
    ASSERT_EQ(sound.samples[2 * i + 1], sound.samples[2 * i]);
  }
}

TEST(SoundReader, RefusesAbsurdSounds) {
  const TemporaryDirectory directory;
  write_plain(directory / "six.wav", sine(480, 6, 48000, 440, 0.5f), 6, 48000,
              SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  expect_error(ErrorKind::unsupported, "6 channels", [&] { read_sound(directory / "six.wav"); });
  write_plain(directory / "slow.wav", sine(480, 1, 100, 10, 0.5f), 1, 100, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  expect_error(ErrorKind::unsupported, "100 samples a second", [&] { read_sound(directory / "slow.wav"); });
  write_plain(directory / "long.wav", std::vector<float>(8000 * 601), 1, 8000,
              SF_FORMAT_WAV | SF_FORMAT_PCM_U8);
  expect_error(ErrorKind::limit_exceeded, "601.0 s", [&] { read_sound(directory / "long.wav"); });
  write_plain(directory / "none.wav", {}, 2, 48000, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
  expect_error(ErrorKind::malformed, "no samples", [&] { read_sound(directory / "none.wav"); });
  std::vector<float> bad(4800);
  bad[2400] = NAN;
  write_plain(directory / "nan.wav", bad, 1, 48000, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  expect_error(ErrorKind::non_finite, "0.050 s", [&] { read_sound(directory / "nan.wav"); });
}

}  // namespace
}  // namespace assay::audio
