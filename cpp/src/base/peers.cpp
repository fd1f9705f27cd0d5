#include "base/peers.h"

#include <algorithm>

#include "model/quote.h"
#include "model/text.h"

namespace antipode {

bool IsHostName(std::string_view name) {
  constexpr std::string_view kLabel = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  for (const std::string_view label : SplitAt(name, '.')) {
    if (label.empty() || label.find_first_not_of(kLabel) != std::string_view::npos) return false;
  }
  return true;
}

Result<Peers> Peers::Make(const std::vector<std::string>& items) {
  Peers peers;
  for (const std::string& item : items) {
    std::string text = Lower(item);
    while (EndsWith(text, ".")) text.pop_back();
    const auto bad = [&item](std::string_view what) {
      return Error{ErrorCode::kConfiguration, "AP305", "ANTIPODE_PEERS: " + std::string(what) + ": " + Quoted(item)};
    };
    if (text == "*") {
      peers.everyone_ = true;
    } else if (text.find('/') != std::string::npos || ParseAddress(text)) {
      const std::optional<Network> network = ParseNetwork(text);
      if (!network) return bad("not an address or a range");
      peers.networks_.push_back(*network);
    } else if (!IsHostName(StartsWith(text, ".") ? std::string_view(text).substr(1) : std::string_view(text))) {
      return bad("not a name, .suffix, address, range or *");
    } else {
      (StartsWith(text, ".") ? peers.suffixes_ : peers.names_).push_back(text);
    }
  }
  return peers;
}

bool Peers::Lists(std::string_view host) const {
  if (everyone_ || std::find(names_.begin(), names_.end(), host) != names_.end()) return true;
  const auto ends = [host](const std::string& suffix) { return EndsWith(host, suffix); };
  if (std::any_of(suffixes_.begin(), suffixes_.end(), ends)) return true;
  if (networks_.empty()) return false;
  const std::optional<Address> address = ParseAddress(host);
  return address && std::any_of(networks_.begin(), networks_.end(),
                                [&address](const Network& network) { return network.Contains(*address); });
}

}  // namespace antipode
