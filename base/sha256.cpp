#include "base/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.hpp"

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
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(ErrorKind::io, {.where = file.string(), .found = "cannot be opened"});
  Digest digest;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (stream) {
    stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    digest.update(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) throw Error(ErrorKind::io, {.where = file.string(), .found = "cannot be read"});
  return digest.hex();
}

}  // namespace assay
