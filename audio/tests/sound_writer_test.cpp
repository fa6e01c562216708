#include "audio/sound_writer.hpp"

#include <signal.h>
#include <sndfile.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "audio/sound_reader.hpp"
#include "audio/tests/sounds.hpp"
#include "base/file.hpp"
#include "base/path.hpp"
#include "base/tests/expect_error.hpp"
#include "base/tests/temporary_directory.hpp"

namespace assay::audio {
namespace {

const SoundTags kTags{.title = "calm piano", .comment = "prompt: calm piano; seed: 18446744073709551615"};

SoundFormat format_of(const std::string& name, const char* samples) {
  return sound_format_of(name, samples, "samples");
}

TEST(SoundWriter, EveryFormatIsReadBackScaled) {
  struct Case {
    const char* name;
    const char* samples;
    float tolerance;
  };
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  const std::vector<float> song = sine(48000, 2, 48000, 440, 3.0f);
  spool.append(song);
  for (const Case& c :
       {Case{"a.wav", "16", 4.6e-5f}, Case{"b.wav", "24", 2.5e-7f}, Case{"c.wav", "float", 0.0f},
        Case{"d.flac", "16", 4.6e-5f}, Case{"e.flac", "24", 2.5e-7f}}) {
    write_sound(directory / c.name, format_of(c.name, c.samples), spool, kTags);
    const Sound sound = read_sound(directory / c.name);
    ASSERT_EQ(sound.samples.size(), song.size()) << c.name;
    const Loudness loudness = loudness_of(spool.peak());
    for (std::size_t i = 0; i < song.size(); ++i) {
      ASSERT_NEAR(sound.samples[i], loudness.apply(song[i]), c.tolerance) << c.name << ' ' << i;
    }
  }
}

TEST(SoundWriter, Mp3HoldsTheSong) {
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  const std::vector<float> song = sine(96000, 2, 48000, 440, 0.5f);
  spool.append(song);
  write_sound(directory / "a.mp3", SoundFormat::mp3, spool, kTags);
  const Sound sound = read_sound(directory / "a.mp3");
  EXPECT_NEAR(static_cast<double>(sound.frames()), 96000.0, 3000.0) << "an encoder pads to its frames";
  const auto loudest = std::ranges::max(sound.samples);
  EXPECT_NEAR(loudest, 0.891, 0.05);
}

TEST(SoundWriter, TagsAreInTheFileAndEqualSongsAreEqualFiles) {
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  spool.append(sine(4800, 2, 48000, 440, 0.5f));
  for (const std::string name : {"a.wav", "a.flac", "a.mp3"}) {
    write_sound(directory / name, format_of(name, ""), spool, kTags);
    SF_INFO info{};
    SNDFILE* sound = sf_open((directory / name).c_str(), SFM_READ, &info);
    ASSERT_NE(sound, nullptr) << name;
    const char* title = sf_get_string(sound, SF_STR_TITLE);
    const char* comment = sf_get_string(sound, SF_STR_COMMENT);
    EXPECT_EQ(std::string(title == nullptr ? "" : title), kTags.title) << name;
    EXPECT_EQ(std::string(comment == nullptr ? "" : comment), kTags.comment) << name;
    sf_close(sound);
    write_sound(directory / ("2" + name), format_of(name, ""), spool, kTags);
    EXPECT_EQ(read_text_file(directory / name), read_text_file(directory / ("2" + name))) << name;
  }
}

/// No file of this process may grow past `bytes` while it lives: what a full disk looks like to a writer.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    struct rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  struct rlimit before_ {};
};

TEST(SoundWriter, AFullDiskIsAnErrorAndLeavesNothing) {
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  std::vector<float> noise = sine(96000, 2, 48000, 440, 0.5f);
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] += 0.3f * std::sin(static_cast<float>(i * i % 10007));
  spool.append(noise);
  for (const std::string name : {"a.wav", "a.flac", "a.mp3"}) {
    const FileSizeLimit limit(12000);
    expect_error(ErrorKind::io, "cannot be written",
                 [&] { write_sound(directory / name, format_of(name, ""), spool, kTags); });
    EXPECT_TRUE(list_directory(directory.path()).empty()) << name;
  }
  const FileSizeLimit limit(spool.samples() * sizeof(float) + 4096);
  SoundSpool second(directory.path());
  second.append(noise);
  expect_error(ErrorKind::io, "decoded samples", [&] { second.append(noise); });
}

TEST(SoundWriter, StopsOnRequestAndLeavesNothing) {
  const TemporaryDirectory directory;
  SoundSpool spool(directory.path());
  spool.append(sine(4800, 2, 48000, 440, 0.5f));
  std::stop_source source;
  source.request_stop();
  expect_error(ErrorKind::cancelled, "stopped", [&] {
    write_sound(directory / "a.wav", SoundFormat::wav16, spool, kTags, source.get_token());
  });
  EXPECT_TRUE(list_directory(directory.path()).empty());
}

}  // namespace
}  // namespace assay::audio
