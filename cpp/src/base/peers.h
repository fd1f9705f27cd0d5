// The hosts that the setting ANTIPODE_PEERS lists (spec TRUST-16, TRUST-17).
#ifndef ANTIPODE_SRC_BASE_PEERS_H_
#define ANTIPODE_SRC_BASE_PEERS_H_

#include <string>
#include <string_view>
#include <vector>

#include "antipode/result.h"
#include "model/address.h"

namespace antipode {

// What ANTIPODE_PEERS lists: host names, `.suffixes`, addresses and CIDR ranges, `*` (TRUST-16).
class Peers {
 public:
  // kConfiguration for an item that is none of these.
  static Result<Peers> Make(const std::vector<std::string>& items);

  // Whether a host, in lower case and without port, is listed; a name is never looked up (TRUST-17).
  bool Lists(std::string_view host) const;

 private:
  bool everyone_ = false;
  std::vector<std::string> names_;
  std::vector<std::string> suffixes_;
  std::vector<Network> networks_;
};

// Whether a host in lower case is a name: labels of letters, digits, `-` and `_`, with single dots between.
bool IsHostName(std::string_view name);

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_PEERS_H_
