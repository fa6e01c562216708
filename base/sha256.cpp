#include "base/sha256.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.hpp"
#include "base/file.hpp"

namespace assay {
namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void update(const void* data, std::size_t size) {
    check(EVP_DigestUpdate(context_.get(), data, size) == 1);
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int size = 0;
    check(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += "0123456789abcdef"[bytes[i] >> 4];
      text += "0123456789abcdef"[bytes[i] & 15];
    }
    return text;
  }

 private:
  static void check(bool ok) {
    if (!ok) throw Error(ErrorKind::internal, {.where = "SHA-256", .found = "OpenSSL refused the digest"});
  }
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  Digest digest;
  digest.update(bytes.data(), bytes.size());
  return digest.hex();
}

std::string sha256_hex(const std::filesystem::path& file) {
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  const MappedFile mapped = MappedFile::open(file);
  Digest digest;
  for (std::span<const std::byte> rest = mapped.bytes(); !rest.empty();) {
    const auto piece = rest.first(std::min(kPiece, rest.size()));
    digest.update(piece.data(), piece.size());
    mapped.release(piece);
    rest = rest.subspan(piece.size());
  }
  return digest.hex();
}

}  // namespace assay
