// Which addresses are private, and which addresses a forwarding header names (spec TRUST-6 to TRUST-14).
//
// Private is this list and no library's: libraries disagree.
#ifndef ANTIPODE_SRC_ADDRESSES_H_
#define ANTIPODE_SRC_ADDRESSES_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// A header line: name and value.
using Line = std::pair<std::string, std::string>;

// The address in a text; white space, quotes, brackets, port, zone and gRPC's prefixes are taken off (TRUST-7,
// TRUST-8).
std::optional<Address> ParseAddress(std::string_view text);

// An address or a range in CIDR form; nothing where it is neither, or bits are set beyond the prefix.
std::optional<Network> ParseNetwork(std::string_view text);

bool IsPrivate(const Address& address);

// Whether a peer's address as text is private; what cannot be parsed is public (TRUST-8), and so is no peer at all. A
// Unix socket counts as loopback (TRUST-9).
bool IsPrivatePeer(std::string_view peer);

// Whether these lines have more hops or octets than are looked at (TRUST-32).
bool AreTooLong(const std::vector<Line>& headers);

// The first address in `X-Forwarded-For` and `Forwarded` lines that is not private: header and address (TRUST-10 to
// 12).
std::optional<Line> PublicAddressIn(const std::vector<Line>& headers);

}  // namespace antipode

#endif  // ANTIPODE_SRC_ADDRESSES_H_
