#include "target.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <charconv>

namespace antipode::redis {
namespace {

std::optional<int> Number(std::string_view text, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > most) return std::nullopt;
  return number;
}

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned octet = 0;
    if (text[at] == '%' && at + 2 < text.size()) {
      const char* const first = text.data() + at + 1;
      if (const auto [end, error] = std::from_chars(first, first + 2, octet, 16);
          error == std::errc() && end == first + 2) {
        plain += static_cast<char>(octet);
        at += 2;
        continue;
      }
    }
    plain += text[at];
  }
  return plain;
}

bool Take(std::string_view& text, std::string_view beginning) {
  if (text.substr(0, beginning.size()) != beginning) return false;
  text.remove_prefix(beginning.size());
  return true;
}

// `/2`, or the query's `db=2`.
std::optional<int> Database(std::string_view text) {
  if (text.empty()) return 0;
  return Number(text, 1 << 20);
}

// Whether words for a server are another one's than the peer; a name is not resolved.
bool IsElsewhere(const Target& peer, const Target& words) {
  in6_addr number{};
  const bool is_number = inet_pton(AF_INET, words.host.c_str(), &number) == 1 ||
                         inet_pton(AF_INET6, words.host.c_str(), &number) == 1;
  return peer.port != words.port || (is_number && peer.host != words.host);
}

// The peer of an open connection; nothing where it has none, or a socket's path.
std::optional<Target> Peer(const redisContext& context) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(context.fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return std::nullopt;
  Target target;
  const void* number = nullptr;
  if (peer.ss_family == AF_INET) {
    const auto& found = reinterpret_cast<const sockaddr_in&>(peer);
    number = &found.sin_addr;
    target.port = ntohs(found.sin_port);
  } else if (peer.ss_family == AF_INET6) {
    const auto& found = reinterpret_cast<const sockaddr_in6&>(peer);
    number = &found.sin6_addr;
    target.port = ntohs(found.sin6_port);
  } else {
    return std::nullopt;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(peer.ss_family, number, text.data(), text.size()) == nullptr) return std::nullopt;
  target.host = text.data();
  return target;
}

}  // namespace

std::string Target::Address() const {
  const std::string suffix = database == 0 ? std::string() : "/" + std::to_string(database);
  if (!path.empty()) return "unix://" + path + suffix;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return "redis://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port) + suffix;
}

Result<Target> Target::Parse(std::string_view url) {
  const std::string_view shown = url.substr(url.rfind('@') == std::string_view::npos ? 0 : url.rfind('@') + 1);
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::kConfiguration, "AP502", "no server's URL: '" + std::string(shown) + "': " + why};
  };
  Target target;
  std::string_view rest = url;
  if (Take(rest, "rediss://")) return refused("hiredis 0.14 speaks no TLS; use a TLS proxy beside the service");
  const bool is_unix = Take(rest, "unix://");
  if (!is_unix && !Take(rest, "redis://")) return refused("it begins with redis:// or unix://");
  std::string_view query;
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    query = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view credentials = rest.substr(0, at);
    const auto colon = credentials.find(':');
    target.user = Unescaped(credentials.substr(0, colon));
    if (colon != std::string_view::npos) target.password = Unescaped(credentials.substr(colon + 1));
    rest = rest.substr(at + 1);
  }
  std::string_view number;
  if (const auto found = query.find("db=");
      found == 0 || (found != std::string_view::npos && query[found - 1] == '&')) {
    number = query.substr(found + 3);
    number = number.substr(0, number.find('&'));
  }
  if (is_unix) {
    target.path = Unescaped(rest);
    if (target.path.empty()) return refused("it has no path");
  } else {
    if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
      if (slash + 1 < rest.size()) number = rest.substr(slash + 1);
      rest = rest.substr(0, slash);
    }
    std::string_view port;
    if (!rest.empty() && rest.front() == '[') {
      const auto end = rest.find(']');
      if (end == std::string_view::npos) return refused("its address has no end");
      port = rest.substr(end + 1);
      rest = rest.substr(1, end - 1);
    } else if (const auto colon = rest.rfind(':'); colon != std::string_view::npos) {
      port = rest.substr(colon);
      rest = rest.substr(0, colon);
    }
    target.host = rest.empty() ? "localhost" : Unescaped(rest);
    if (!port.empty()) {
      const auto found = port.front() == ':' ? Number(port.substr(1), 65535) : std::nullopt;
      if (!found) return refused("its port is no number");
      target.port = *found;
    }
  }
  const auto database = Database(number);
  if (!database) return refused("its database is no number");
  target.database = *database;
  return target;
}

Target Target::ReachedServer(const redisContext& context) {
  Target target;
  if (context.connection_type == REDIS_CONN_UNIX) {
    if (context.unix_sock.path != nullptr) target.path = context.unix_sock.path;
  } else if (context.tcp.host != nullptr) {
    target.host = context.tcp.host;
    target.port = context.tcp.port;
    if (const auto peer = Peer(context); peer && IsElsewhere(*peer, target)) return *peer;
  }
  return target;
}

void Target::LeadTo(const Target& place) {
  host = place.host;
  port = place.port;
  path = place.path;
}

Result<Target> Target::Of(const std::any& given) {
  if (const auto* target = std::any_cast<Target>(&given)) return *target;
  if (const auto* url = std::any_cast<std::string>(&given)) return Parse(*url);
  if (const auto* text = std::any_cast<const char*>(&given)) return Parse(*text);
  return Error{ErrorCode::kConfiguration, "AP502", "a Redis server is given by its URL: redis://host:port"};
}

}  // namespace antipode::redis
