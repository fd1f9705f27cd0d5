#include "trust/hosts.h"

#include <algorithm>

#include "base/peers.h"
#include "model/text.h"
#include "trust/addresses.h"

namespace antipode {
namespace {

constexpr std::size_t kLongestHost = 512;
constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kClusterSuffixes[] = {".local", ".internal", ".svc", ".cluster.local", ".lan", ".test"};
constexpr int kGreatestPort = 65535;

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
  if (!IsHostName(name) || IsNumber(last)) return false;
  if (dot == std::string::npos) return !host.dotted;
  return std::any_of(std::begin(kClusterSuffixes), std::end(kClusterSuffixes),
                     [&name](std::string_view suffix) { return EndsWith(name, suffix); });
}

}  // namespace antipode
