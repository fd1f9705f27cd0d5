#include "trust/addresses.h"

#include <algorithm>
#include <cstring>

#include "model/text.h"

namespace antipode {
namespace {

constexpr std::size_t kLongest = 256;
constexpr std::string_view kBlank = " \t";
constexpr std::string_view kSpace = " \t\n\r\f\v";
constexpr std::size_t kMostHops = 64;
constexpr std::size_t kMostForwardedOctets = 4096;

const std::vector<Network>& PrivateNetworks() {
  static const auto* const networks = [] {
    auto* const made = new std::vector<Network>();
    for (const char* range : {"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
                              "100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10"}) {
      made->push_back(*ParseNetwork(range));
    }
    return made;
  }();
  return *networks;
}

bool IsPrivateText(std::string_view text) {
  if (text.size() > kLongest) return false;
  const std::optional<Address> address = ParseAddress(text);
  return address && IsPrivate(*address);
}

bool IsPrivateHop(std::string_view text) { return text == "unix:" || IsPrivateText(text); }

bool IsTokenCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && std::strchr("!#$%&'*+.^_`|~-", c) != nullptr);
}

// Walks through the parameters of a `Forwarded` line (RFC 7239).
class ForwardedReader {
 public:
  explicit ForwardedReader(std::string_view line) : line_(line) {}

  // The first `for` or `by` that is not private; a break of the grammar is an address that cannot be read.
  std::optional<std::string> FirstPublic() {
    while (SkipSeparators()) {
      std::string name;
      std::string value;
      if (!ReadPair(name, value)) return kUnreadable;
      if (name != "for" && name != "by") continue;
      if (value.empty()) return kUnreadable;
      if (!IsPrivateHop(value)) return value;
    }
    return std::nullopt;
  }

 private:
  static constexpr const char* kUnreadable = "an address that cannot be read";

  bool SkipSeparators() {
    at_ = std::min(line_.find_first_not_of(",; \t", at_), line_.size());
    return at_ < line_.size();
  }

  void SkipSpace() { at_ = std::min(line_.find_first_not_of(kSpace, at_), line_.size()); }

  bool ReadPair(std::string& name, std::string& value) {
    SkipSpace();
    const std::size_t begin = at_;
    while (at_ < line_.size() && IsTokenCharacter(line_[at_])) ++at_;
    name = Lower(line_.substr(begin, at_ - begin));
    if (name.empty() || at_ == line_.size() || line_[at_] != '=') return false;
    ++at_;
    if (!(at_ < line_.size() && line_[at_] == '"' ? ReadQuoted(value) : ReadToken(value))) return false;
    SkipSpace();
    return at_ == line_.size() || line_[at_] == ',' || line_[at_] == ';';
  }

  bool ReadQuoted(std::string& value) {
    value = '"';
    for (++at_; at_ < line_.size(); ++at_) {
      if (line_[at_] == '"') {
        ++at_;
        value += '"';
        return true;
      }
      if (line_[at_] == '\\' && ++at_ == line_.size()) return false;
      value += line_[at_];
    }
    return false;
  }

  bool ReadToken(std::string& value) {
    const std::size_t end = std::min(line_.find_first_of(" \t\n\r\f\v\",;", at_), line_.size());
    value = line_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

std::optional<std::string> FirstPublicInList(std::string_view line) {
  for (const std::string_view item : SplitAt(line, ',')) {
    const std::string_view address = Trim(item, kBlank);
    if (!address.empty() && !IsPrivateHop(address)) return std::string(address);
  }
  return std::nullopt;
}

}  // namespace

bool IsPrivate(const Address& address) {
  const std::vector<Network>& networks = PrivateNetworks();
  return std::any_of(networks.begin(), networks.end(), [&](const Network& each) { return each.Contains(address); });
}

bool IsPrivatePeer(std::string_view peer) {
  for (const std::string_view start : {"unix:", "unix-abstract:", "/", "@"}) {
    if (StartsWith(peer, start)) return true;
  }
  return IsPrivateText(peer);
}

bool AreTooLong(const std::vector<Line>& headers) {
  std::size_t hops = 0;
  std::size_t octets = 0;
  for (const auto& [name, value] : headers) {
    if (!EqualsIgnoringCase(name, "x-forwarded-for") && !EqualsIgnoringCase(name, "forwarded")) continue;
    octets += value.size();
    if (octets > kMostForwardedOctets) return true;
    for (const std::string_view hop : SplitAt(value, ',')) hops += Trim(hop, kBlank).empty() ? 0 : 1;
  }
  return hops > kMostHops;
}

std::optional<Line> PublicAddressIn(const std::vector<Line>& headers) {
  for (const auto& [name, value] : headers) {
    if (EqualsIgnoringCase(name, "x-forwarded-for")) {
      if (auto found = FirstPublicInList(value)) return Line("X-Forwarded-For", *found);
    } else if (EqualsIgnoringCase(name, "forwarded")) {
      if (auto found = ForwardedReader(value).FirstPublic()) return Line("Forwarded", *found);
    }
  }
  return std::nullopt;
}

}  // namespace antipode
