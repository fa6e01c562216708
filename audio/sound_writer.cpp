#include "audio/sound_writer.hpp"

#include <sndfile.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audio/output_file.hpp"
#include "base/error.hpp"

namespace assay::audio {
namespace {

constexpr int kChannels = 2;
constexpr int kRate = 48000;

int libsndfile_format(SoundFormat format) {
  switch (format) {
    case SoundFormat::wav16:
      return SF_FORMAT_WAV | SF_FORMAT_PCM_16;
    case SoundFormat::wav24:
      return SF_FORMAT_WAV | SF_FORMAT_PCM_24;
    case SoundFormat::wav_float:
      return SF_FORMAT_WAV | SF_FORMAT_FLOAT;
    case SoundFormat::flac16:
      return SF_FORMAT_FLAC | SF_FORMAT_PCM_16;
    case SoundFormat::flac24:
      return SF_FORMAT_FLAC | SF_FORMAT_PCM_24;
    case SoundFormat::mp3:
      return SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
  }
  return 0;
}

OutputFile& output_of(void* user) {
  return *static_cast<OutputFile*>(user);
}

/// libsndfile's view of an OutputFile.
SF_VIRTUAL_IO virtual_io() {
  SF_VIRTUAL_IO io{};
  io.get_filelen = [](void* user) -> sf_count_t { return output_of(user).size(); };
  io.seek = [](sf_count_t offset, int whence, void* user) -> sf_count_t {
    return output_of(user).seek(offset, whence);
  };
  io.read = [](void* data, sf_count_t count, void* user) -> sf_count_t {
    const auto read = output_of(user).read({static_cast<std::byte*>(data), static_cast<std::size_t>(count)});
    return static_cast<sf_count_t>(read);
  };
  io.write = [](const void* data, sf_count_t count, void* user) -> sf_count_t {
    const auto written =
        output_of(user).write({static_cast<const std::byte*>(data), static_cast<std::size_t>(count)});
    return static_cast<sf_count_t>(written);
  };
  io.tell = [](void* user) -> sf_count_t { return output_of(user).seek(0, SEEK_CUR); };
  return io;
}

struct CloseSound {
  void operator()(SNDFILE* sound) const { sf_close(sound); }
};
using Encoder = std::unique_ptr<SNDFILE, CloseSound>;

[[noreturn]] void fail_encoding(const OutputFile& output, ErrorKind kind, const std::string& reason) {
  output.check();
  throw Error(kind, {.where = output.path().string(), .found = "cannot be encoded: " + reason});
}

Encoder open_encoder(OutputFile& output, SF_VIRTUAL_IO& io, SoundFormat format) {
  SF_INFO info{};
  info.samplerate = kRate;
  info.channels = kChannels;
  info.format = libsndfile_format(format);
  Encoder encoder(sf_open_virtual(&io, SFM_WRITE, &info, &output));
  if (encoder == nullptr) fail_encoding(output, ErrorKind::unsupported, sf_strerror(nullptr));
  // The chunk of peaks holds the time of writing: equal songs are equal files.
  sf_command(encoder.get(), SFC_SET_ADD_PEAK_CHUNK, nullptr, SF_FALSE);
  if (format == SoundFormat::mp3) {
    double quality = 0.0;  // of 0, the best, to 1
    sf_command(encoder.get(), SFC_SET_COMPRESSION_LEVEL, &quality, sizeof(quality));
  }
  return encoder;
}

void set_tags(SNDFILE* encoder, const SoundTags& tags) {
  const auto set = [&](int which, const std::string& text) {
    if (!text.empty()) sf_set_string(encoder, which, text.c_str());
  };
  set(SF_STR_TITLE, tags.title);
  set(SF_STR_SOFTWARE, "assay");
  set(SF_STR_COMMENT, tags.comment);
}

void write_samples(SNDFILE* encoder, const OutputFile& output, const SoundSpool& spool,
                   const std::stop_token& stop) {
  constexpr std::size_t kBlock = std::size_t{1} << 15;
  const Loudness loudness = loudness_of(spool.peak());
  std::vector<float> block(kBlock);
  for (std::size_t first = 0; first < spool.samples(); first += kBlock) {
    if (stop.stop_requested()) {
      throw Error(ErrorKind::cancelled, {.where = output.path().string(), .found = "stopped on request"});
    }
    const std::span<float> part(block.data(), std::min(kBlock, spool.samples() - first));
    spool.read(first, part);
    for (float& sample : part) sample = loudness.apply(sample);
    const auto frames = static_cast<sf_count_t>(part.size() / kChannels);
    if (sf_writef_float(encoder, part.data(), frames) != frames) {
      fail_encoding(output, ErrorKind::io, sf_strerror(encoder));
    }
    output.check();
  }
}

}  // namespace

void write_sound(const std::filesystem::path& file, SoundFormat format, const SoundSpool& spool,
                 const SoundTags& tags, std::stop_token stop) {
  OutputFile output(file);
  SF_VIRTUAL_IO io = virtual_io();
  Encoder encoder = open_encoder(output, io, format);
  set_tags(encoder.get(), tags);
  write_samples(encoder.get(), output, spool, stop);
  // Closing writes what the encoder still holds, and the header's sizes.
  const int failed = sf_close(encoder.release());
  if (failed != 0) fail_encoding(output, ErrorKind::io, sf_error_number(failed));
  output.commit();
}

}  // namespace assay::audio
