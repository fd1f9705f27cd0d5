#include "hosts.h"

#include <algorithm>

#include "antipode/result.h"
#include "quote.h"
#include "text.h"
#include "trust.h"

namespace antipode {
namespace {

constexpr std::size_t kLongestHost = 512;
constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kClusterSuffixes[] = {".local", ".internal", ".svc", ".cluster.local", ".lan", ".test"};
constexpr int kGreatestPort = 65535;

// Labels of letters, digits, `-` and `_`, with single dots between.
bool IsName(std::string_view name) {
  for (const std::string_view label : SplitAt(name, '.')) {
    if (label.empty() || label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != kNone) return false;
  }
  return true;
}

// Whether some resolvers would read a name that ends so as an address (TRUST-17).
bool IsNumber(std::string_view label) {
  if (StartsWith(label, "0x")) return label.find_first_not_of("0123456789abcdef", 2) == kNone;
  return !label.empty() && label.find_first_not_of(kDigits) == kNone;
}

}  // namespace

std::optional<Host> ReadHost(std::string_view text) {
  if (text.size() > kLongestHost) return std::nullopt;
  Host host{Lower(Trim(text, " \t")), false};
  const std::size_t colon = host.name.find(':');
  if (colon != std::string::npos && colon > 0 && host.name.find_first_of("[]") == std::string::npos) {
    const std::string port = host.name.substr(colon + 1);
    if (port.size() <= 5 && port.find_first_not_of(kDigits) == std::string::npos &&
        (port.empty() || std::stoi(port) <= kGreatestPort)) {
      host.name.resize(colon);
    }
  }
  if (EndsWith(host.name, ".")) {
    host.name.pop_back();
    host.dotted = true;
  }
  return host;
}

bool IsInside(const Host& host) {
  const std::string& name = host.name;
  if (const std::optional<Address> address = ParseAddress(name)) return IsPrivate(*address);
  if (name == "localhost") return true;
  const std::size_t dot = name.rfind('.');
  const std::string_view last = std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
  if (!IsName(name) || IsNumber(last)) return false;
  if (dot == std::string::npos) return !host.dotted;
  return std::any_of(std::begin(kClusterSuffixes), std::end(kClusterSuffixes),
                     [&name](std::string_view suffix) { return EndsWith(name, suffix); });
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
    } else if (!IsName(StartsWith(text, ".") ? std::string_view(text).substr(1) : std::string_view(text))) {
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
