// Bytes of a sound file that a caller names: whatever they are, sound in its promised form or an Error.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "audio/sound_reader.hpp"
#include "base/error.hpp"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_sound(const assay::audio::Sound& sound) {
  check(!sound.samples.empty() || sound.frames() == 0);
  check(sound.samples.size() % 2 == 0);
  check(sound.seconds() <= assay::audio::kLongestSeconds + 1);
}

}  // namespace

// libsndfile and its codecs lose some of what they allocate for files that they refuse; that is theirs.
extern "C" {
const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's names
const char* __lsan_default_options();       // NOLINT

const char* __lsan_default_suppressions() {
  return "leak:libsndfile\nleak:libvorbis\nleak:libogg\nleak:libFLAC\nleak:libmpg123\nleak:libopus\n";
}

const char* __lsan_default_options() {
  return "print_suppressions=0";
}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    check_sound(assay::audio::parse_sound(std::as_bytes(std::span(data, size)), "sound"));
  } catch (const assay::Error& error) {
    check(*error.what() != '\0');
  }
  return 0;
}
