// IP addresses and ranges of them, and their text (spec TRUST-7, TRUST-8, TRUST-16).
#ifndef ANTIPODE_SRC_MODEL_ADDRESS_H_
#define ANTIPODE_SRC_MODEL_ADDRESS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace antipode {

// An IP address; an IPv4-mapped one of IPv6 is that of IPv4.
struct Address {
  bool is_v6 = false;
  std::array<unsigned char, 16> octets{};  // the first four where it is IPv4

  std::size_t bits() const { return is_v6 ? 128 : 32; }
};

// A range of addresses.
struct Network {
  Address address;
  std::size_t prefix = 0;

  bool Contains(const Address& other) const;
};

// The address in a text; white space, quotes, brackets, port, zone and gRPC's prefixes are taken off (TRUST-7,
// TRUST-8).
std::optional<Address> ParseAddress(std::string_view text);

// An address or a range in CIDR form; nothing where it is neither, or bits are set beyond the prefix.
std::optional<Network> ParseNetwork(std::string_view text);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_ADDRESS_H_
