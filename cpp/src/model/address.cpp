#include "model/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "model/text.h"

namespace antipode {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kBlank = " \t";
constexpr std::string_view kDigits = "0123456789";
constexpr int kGreatestPort = 65535;

// A bare address as the C library reads it: no leading zeros, no shorthand, no other bases.
std::optional<Address> BareAddress(const std::string& text) {
  if (text.find('\0') != std::string::npos) return std::nullopt;
  Address address;
  if (inet_pton(AF_INET, text.c_str(), address.octets.data()) == 1) return address;
  address.is_v6 = true;
  if (inet_pton(AF_INET6, text.c_str(), address.octets.data()) == 1) return address;
  return std::nullopt;
}

Address Unmapped(const Address& address) {
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (!address.is_v6 || std::memcmp(address.octets.data(), kMapped, sizeof kMapped) != 0) return address;
  Address v4;
  std::copy(address.octets.begin() + 12, address.octets.end(), v4.octets.begin());
  return v4;
}

// Whether these are one to five digits that name a port.
bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of(kDigits) != kNone) return false;
  return std::stoi(std::string(text)) <= kGreatestPort;
}

void Replace(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

// Takes brackets and port off; false where what is there is not as it must be.
bool TakeOffPort(std::string& text) {
  if (StartsWith(text, "[")) {
    const std::size_t close = text.find(']');
    if (close == std::string::npos) return false;
    const std::string_view rest = std::string_view(text).substr(close + 1);
    if (!rest.empty() && (rest[0] != ':' || !IsPort(rest.substr(1)))) return false;
    text = text.substr(1, close - 1);
    return text.find(':') != std::string::npos && text.find('[') == std::string::npos;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find_first_not_of("0123456789.") != colon) return true;
  const std::string_view port = std::string_view(text).substr(colon + 1);
  if (port.find_first_not_of(kDigits) != kNone || port.empty()) return true;  // no port: what it is shows below
  if (!IsPort(port)) return false;
  text.resize(colon);
  return true;
}

}  // namespace

bool Network::Contains(const Address& other) const {
  if (other.is_v6 != address.is_v6) return false;
  for (std::size_t bit = 0; bit < prefix; ++bit) {
    const int mask = 0x80 >> bit % 8;
    if ((address.octets[bit / 8] & mask) != (other.octets[bit / 8] & mask)) return false;
  }
  return true;
}

std::optional<Address> ParseAddress(std::string_view text) {
  text = Trim(text, kBlank);
  if (text.size() > 1 && text.front() == '"' && text.back() == '"') {
    text = Trim(text.substr(1, text.size() - 2), kBlank);
  }
  std::string bare(text);
  if (StartsWith(bare, "ipv4:") || StartsWith(bare, "ipv6:")) {
    bare.erase(0, 5);
    Replace(bare, "%5B", "[");
    Replace(bare, "%5D", "]");
    Replace(bare, "%25", "%");
  }
  if (!TakeOffPort(bare)) return std::nullopt;
  if (const std::size_t zone = bare.find('%'); zone != std::string::npos && bare.find(':') != std::string::npos) {
    if (zone + 1 == bare.size()) return std::nullopt;
    bare.resize(zone);
  }
  const std::optional<Address> address = BareAddress(bare);
  if (!address) return std::nullopt;
  return Unmapped(*address);
}

std::optional<Network> ParseNetwork(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::optional<Address> address =
      slash == kNone ? ParseAddress(text) : BareAddress(std::string(text.substr(0, slash)));
  if (!address) return std::nullopt;
  if (slash == kNone) return Network{*address, address->bits()};
  const std::string_view digits = text.substr(slash + 1);
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of(kDigits) != kNone) return std::nullopt;
  const auto prefix = static_cast<std::size_t>(std::stoi(std::string(digits)));
  if (prefix > address->bits()) return std::nullopt;
  for (std::size_t bit = prefix; bit < address->bits(); ++bit) {
    if ((address->octets[bit / 8] & 0x80 >> bit % 8) != 0) return std::nullopt;
  }
  return Network{*address, prefix};
}

}  // namespace antipode
