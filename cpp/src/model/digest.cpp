#include "model/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace antipode {
namespace {

const unsigned char* Octets(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

Digest Sha256(std::string_view octets) {
  Digest digest{};
  EVP_Digest(octets.data(), octets.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

Digest HmacSha256(std::string_view key, std::string_view octets) {
  Digest digest{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Octets(octets), octets.size(), digest.data(), &length);
  return digest;
}

std::string Hex(const Digest& digest, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace antipode
