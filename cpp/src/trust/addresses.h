// Which addresses are private, and which addresses a forwarding header names (spec TRUST-6 to TRUST-14).
//
// Private is this list and no library's: libraries disagree.
#ifndef ANTIPODE_SRC_TRUST_ADDRESSES_H_
#define ANTIPODE_SRC_TRUST_ADDRESSES_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/address.h"

namespace antipode {

// A header line: name and value.
using Line = std::pair<std::string, std::string>;

bool IsPrivate(const Address& address);

// Whether a peer's address as text is private; what cannot be parsed is public (TRUST-8), and so is no peer at all. A
// Unix socket counts as loopback (TRUST-9).
bool IsPrivatePeer(std::string_view peer);

// Whether these lines have more hops or octets than are looked at (TRUST-32).
bool AreTooLong(const std::vector<Line>& headers);

// The first address in `X-Forwarded-CaseShims` and `Forwarded` lines that is not private: header and address (TRUST-10 to
// 12).
std::optional<Line> PublicAddressIn(const std::vector<Line>& headers);

}  // namespace antipode

#endif  // ANTIPODE_SRC_TRUST_ADDRESSES_H_
