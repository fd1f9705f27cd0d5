// SHA-256 and HMAC-SHA256, by OpenSSL.
#ifndef ANTIPODE_SRC_MODEL_DIGEST_H_
#define ANTIPODE_SRC_MODEL_DIGEST_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace antipode {

using Digest = std::array<unsigned char, 32>;

Digest Sha256(std::string_view octets);
Digest HmacSha256(std::string_view key, std::string_view octets);

// The first `count` octets of a digest as lower-case hexadecimal digits.
std::string Hex(const Digest& digest, std::size_t count);

// Whether two texts are equal, in a time that does not depend on where they differ.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_DIGEST_H_
