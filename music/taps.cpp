#include "music/taps.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/writable_folder.hpp"

namespace assay::music {

SongTap taps_into(const std::filesystem::path& folder) {
  require_writable_folder(folder);
  return [folder](std::string_view name, std::size_t rows, std::span<const float> values) {
    const nlohmann::json entry = {{"dtype", "F32"},
                                  {"shape", {rows, rows == 0 ? 0 : values.size() / rows}},
                                  {"data_offsets", {0, values.size_bytes()}}};
    std::string header = nlohmann::json({{std::string(name), entry}}).dump();
    header.resize((header.size() + 7) / 8 * 8, ' ');  // the data is aligned, as the format asks
    const std::uint64_t length = header.size();
    std::string contents(sizeof(length), '\0');
    std::memcpy(contents.data(), &length, sizeof(length));
    contents += header;
    contents.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    write_file_atomically(folder / (std::string(name) + ".safetensors"), contents);
  };
}

}  // namespace assay::music
