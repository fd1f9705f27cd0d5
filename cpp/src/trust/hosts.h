// Hosts that lineages may go to, by name or literal address alone (TRUST-15 to TRUST-17).
#ifndef ANTIPODE_SRC_TRUST_HOSTS_H_
#define ANTIPODE_SRC_TRUST_HOSTS_H_

#include <optional>
#include <string>
#include <string_view>

namespace antipode {

// A host in lower case, without port and trailing dot.
struct Host {
  std::string name;
  bool dotted = false;  // whether it had that dot
};

// The host in `host` or `host:port`; nothing where it is over-long.
std::optional<Host> ReadHost(std::string_view text);

// Whether it is inside without being listed (TRUST-15).
bool IsInside(const Host& host);

}  // namespace antipode

#endif  // ANTIPODE_SRC_TRUST_HOSTS_H_
