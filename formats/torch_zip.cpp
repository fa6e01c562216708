#include "formats/torch_zip.hpp"

#include <zip.h>

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <numeric>

#include "base/error.hpp"
#include "base/file.hpp"
#include "formats/pickle.hpp"
#include "formats/row_conversion.hpp"

namespace assay::formats {
namespace {

constexpr std::uint64_t kMaxInflatedBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostPickleBytes = std::uint64_t{16} << 20;

using Bytes = std::vector<std::byte>;

class Archive {
 public:
  Archive(std::span<const std::byte> bytes, const std::string& origin)
      : origin_(origin), size_(bytes.size()) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    zip_t* opened = source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error);
    const std::string reason = zip_error_strerror(&error);
    const bool no_memory = zip_error_code_zip(&error) == ZIP_ER_MEMORY;
    zip_error_fini(&error);
    if (opened == nullptr && no_memory) {
      zip_source_free(source);
      throw std::bad_alloc();
    }
    if (opened == nullptr) {
      zip_source_free(source);
      fail("not a readable zip archive (" + reason + ")", "a file by torch.save");
    }
    zip_.reset(opened);
    root_ = find_root();
  }

  bool contains(const std::string& name) const {
    return zip_name_locate(zip_.get(), path(name).c_str(), 0) >= 0;
  }

  /// An entry's bytes, no more than `limit`.
  Bytes read(const std::string& name, std::uint64_t limit) {
    const zip_stat_t stat = examine(name);
    if (stat.size > limit) {
      fail("entry '" + name.substr(0, 80) + "' of " + std::to_string(stat.size) + " bytes",
           "at most " + std::to_string(limit));
    }
    account(stat, name);
    const std::unique_ptr<zip_file_t, void (*)(zip_file_t*)> file(zip_fopen_index(zip_.get(), stat.index, 0),
                                                                  [](zip_file_t* f) {
                                                                    if (f != nullptr) zip_fclose(f);
                                                                  });
    if (file == nullptr) fail_entry(name, zip_strerror(zip_.get()));
    Bytes bytes(stat.size);
    const zip_int64_t count = zip_fread(file.get(), bytes.data(), bytes.size());
    // The checksum is compared when the end is read past.
    std::byte beyond{};
    if (count < 0 || static_cast<std::uint64_t>(count) != stat.size ||
        zip_fread(file.get(), &beyond, 1) != 0) {
      fail_entry(name, zip_file_strerror(file.get()));
    }
    return bytes;
  }

  std::uint64_t entry_size(const std::string& name) { return examine(name).size; }

 private:
  struct Discard {
    void operator()(zip_t* zip) const { zip_discard(zip); }
  };

  std::string path(const std::string& name) const { return root_ + name; }

  /// torch keeps everything under one folder, named after the file that was saved.
  std::string find_root() const {
    constexpr std::string_view kPickle = "data.pkl";
    std::string root;
    int found = 0;
    const zip_int64_t entries = zip_get_num_entries(zip_.get(), 0);
    for (zip_int64_t i = 0; i < entries; ++i) {
      const char* raw = zip_get_name(zip_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
      const std::string_view name = raw == nullptr ? "" : raw;
      if (!name.ends_with(kPickle)) continue;
      const std::string_view folder = name.substr(0, name.size() - kPickle.size());
      if (!folder.empty() && folder.find('/') != folder.size() - 1) continue;
      root = folder;
      ++found;
    }
    if (found != 1) fail(std::to_string(found) + " entries named data.pkl", "one, as torch.save writes it");
    return root;
  }

  zip_stat_t examine(const std::string& name) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat(zip_.get(), path(name).c_str(), 0, &stat) != 0) {
      throw Error(ErrorKind::missing, {.where = origin_,
                                       .found = "no entry '" + name.substr(0, 80) + "'",
                                       .advice = "the file is truncated or damaged"});
    }
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_INDEX;
    if ((stat.valid & kNeeded) != kNeeded) fail_entry(name, "its header is incomplete");
    return stat;
  }

  /// Bounds what is allocated by what the file holds: entries that overlap, or inflate, could otherwise ask
  /// for far more.
  void account(const zip_stat_t& stat, const std::string& name) {
    const bool stored = stat.comp_method == ZIP_CM_STORE;
    std::uint64_t& total = stored ? stored_total_ : inflated_total_;
    const std::uint64_t limit = stored ? size_ : kMaxInflatedBytes;
    if (stored && stat.size != stat.comp_size) fail_entry(name, "its two sizes differ");
    if (stat.size > limit - total) {
      fail_entry(name,
                 stored ? "the entries are larger than the file" : "the compressed entries exceed 64 MiB");
    }
    total += stat.size;
  }

  [[noreturn]] void fail_entry(const std::string& name, const std::string& reason) const {
    fail("entry '" + name.substr(0, 80) + "' cannot be read (" + reason + ")", "a whole file by torch.save");
  }

  [[noreturn]] void fail(std::string found, std::string expected) const {
    throw Error(ErrorKind::malformed,
                {.where = origin_, .found = std::move(found), .expected = std::move(expected)});
  }

  const std::string& origin_;
  std::uint64_t size_;
  std::uint64_t stored_total_ = 0;
  std::uint64_t inflated_total_ = 0;
  std::unique_ptr<zip_t, Discard> zip_;
  std::string root_;
};

/// Files by torch before 1.6 are bare pickles, a magic number first (torch/serialization.py, MAGIC_NUMBER).
void refuse_legacy(std::span<const std::byte> bytes, const std::string& origin) {
  if (bytes.size() < 2 || bytes[0] != std::byte{0x80} || std::to_integer<unsigned>(bytes[1]) > 5) return;
  throw Error(ErrorKind::unsupported, {.where = origin,
                                       .found = "a bare pickle, as torch before 1.6 saved",
                                       .expected = "a zip archive by torch.save",
                                       .advice = "load it with torch and save it again"});
}

void check_byte_order(Archive& archive, const std::string& origin) {
  if (!archive.contains("byteorder")) return;
  const Bytes record = archive.read("byteorder", 16);
  const std::string order(reinterpret_cast<const char*>(record.data()), record.size());
  if (order == "little") return;
  throw Error(ErrorKind::unsupported,
              {.where = origin,
               .found = order == "big" ? "big-endian storages" : "an unknown byte order",
               .expected = "little-endian ones",
               .advice = "save it again on a little-endian machine"});
}

/// Elements of a view in row-major order, contiguous, as stored.
Bytes gather(const TorchTensor& tensor, std::size_t width) {
  const std::uint64_t count = tensor.elements();
  Bytes packed(count * width);
  std::vector<std::uint64_t> index(tensor.shape.size(), 0);
  std::uint64_t from = tensor.offset;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::copy_n(tensor.storage->data() + from * width, width, packed.data() + i * width);
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      from += tensor.strides[axis];
      if (++index[axis] < tensor.shape[axis]) break;
      from -= tensor.strides[axis] * tensor.shape[axis];
      index[axis] = 0;
    }
  }
  return packed;
}

}  // namespace

std::uint64_t TorchTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::vector<float> TorchTensor::to_floats() const {
  const Bytes packed = gather(*this, element_bytes(type));
  std::vector<float> values(elements());
  convert_finite({.name = "", .type = type, .shape = shape, .origin = origin}, 0, packed.data(), values);
  return values;
}

const TorchValue* TorchValue::find(std::string_view key) const {
  const Dict* items = dict();
  if (items == nullptr) return nullptr;
  for (const Item& item : items->items) {
    if (item.key.string() != nullptr && *item.key.string() == key) return &item.value;
  }
  return nullptr;
}

const char* TorchValue::kind() const {
  static constexpr std::array<const char*, 8> kNames = {"None",     "a boolean", "an integer", "a number",
                                                        "a string", "a list",    "a dict",     "a tensor"};
  return kNames[value_.index()];
}

TorchValue parse_torch_file(std::span<const std::byte> bytes, const std::string& origin) {
  refuse_legacy(bytes, origin);
  Archive archive(bytes, origin);
  check_byte_order(archive, origin);
  std::map<std::string, std::shared_ptr<const Bytes>> storages;
  const StorageLoader load = [&](const std::string& key, std::uint64_t expected) {
    std::shared_ptr<const Bytes>& kept = storages[key];
    const std::string name = "data/" + key;
    const std::uint64_t size = kept == nullptr ? archive.entry_size(name) : kept->size();
    if (size != expected) {
      throw Error(ErrorKind::malformed, {.where = origin + ": storage '" + key.substr(0, 80) + "'",
                                         .found = std::to_string(size) + " bytes",
                                         .expected = std::to_string(expected) + " by the pickle"});
    }
    if (kept == nullptr) kept = std::make_shared<const Bytes>(archive.read(name, expected));
    return kept;
  };
  return unpickle(archive.read("data.pkl", kMostPickleBytes), origin, load);
}

TorchValue read_torch_file(const std::filesystem::path& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_torch_file(file.bytes(), path.string());
}

}  // namespace assay::formats
