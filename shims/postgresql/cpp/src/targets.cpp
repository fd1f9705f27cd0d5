#include "targets.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

namespace antipode::postgresql {
namespace {

// What concerns the application's own session, and not where the server is. Sorted.
constexpr std::string_view kDropped[] = {"application_name", "client_encoding",      "connect_timeout",
                                         "fallback_application_name", "load_balance_hosts", "options",
                                         "replication",      "target_session_attrs"};

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

std::map<std::string, std::string> KeptWrite(const PQconninfoOption* options) {
  std::map<std::string, std::string> words;
  for (; options != nullptr && options->keyword != nullptr; ++options) {
    if (options->val == nullptr || options->val[0] == '\0') continue;
    if (options->compiled != nullptr && std::string_view(options->compiled) == options->val) continue;
    if (std::binary_search(std::begin(kDropped), std::end(kDropped), std::string_view(options->keyword))) continue;
    words.emplace(options->keyword, options->val);
  }
  return words;
}

std::vector<std::string> Divided(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t comma = text.find(',', at);
    parts.push_back(text.substr(at, comma == std::string::npos ? comma : comma - at));
    if (comma == std::string::npos) return parts;
    at = comma + 1;
  }
}

// A host as a URL has it: the path of a socket is escaped.
std::string Spelled(const std::string& host) {
  if (host.find(':') != std::string::npos) return "[" + host + "]";
  if (host.empty() || host[0] != '/') return host;
  std::string spelled;
  for (const char c : host) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain) {
      spelled += c;
      continue;
    }
    constexpr char kHex[] = "0123456789ABCDEF";
    const auto octet = static_cast<unsigned char>(c);
    spelled += {'%', kHex[octet >> 4], kHex[octet & 15]};
  }
  return spelled;
}

std::string Word(const std::map<std::string, std::string>& words, const char* key) {
  const auto found = words.find(key);
  return found == words.end() ? std::string() : found->second;
}

std::string AddressOf(const std::map<std::string, std::string>& words, const std::string& host,
                      const std::string& port) {
  const std::vector<std::string> hosts = Divided(host.empty() ? "localhost" : host);
  const std::vector<std::string> ports = Divided(port.empty() ? "5432" : port);
  std::string places;
  for (std::size_t place = 0; place < hosts.size(); ++place) {
    const std::string& number = ports[ports.size() == 1 ? 0 : std::min(place, ports.size() - 1)];
    places += (places.empty() ? "" : ",") + Spelled(hosts[place]) + ":" + (number.empty() ? "5432" : number);
  }
  const std::string database = Word(words, "dbname");
  const std::string service = host.empty() ? Word(words, "service") : std::string();
  return "postgresql://" + places + "/" + (database.empty() ? Word(words, "user") : database) +
         (service.empty() ? "" : "?service=" + service);
}

// A text as it may be printed: libpq's own words may hold a part of the password. What cannot be taken apart for sure
// is shown by its scheme alone.
std::string WithoutCredentials(const std::string& text) {
  const std::size_t separator = text.find("://");
  if (separator == std::string::npos) return "…";
  const std::string scheme = text.substr(0, separator + 3);
  const std::string rest = text.substr(separator + 3);
  const std::size_t at = rest.rfind('@');
  if (at != std::string::npos && rest.find_first_of("/?#") < at) return scheme + "…";
  const std::string host = at == std::string::npos ? rest : rest.substr(at + 1);
  return scheme + host.substr(0, host.find_first_of("?#"));
}

std::string Text(const char* text) { return text == nullptr ? std::string() : text; }

// What a text leaves open: libpq takes it of the environment, and of its service file, when it connects. What it says
// now counts.
void AddDefaults(std::map<std::string, std::string>& words) {
  constexpr std::string_view kOfPlace[] = {"dbname", "host", "hostaddr", "port", "user"};
  if (words.count("service") != 0) return;  // its file comes before the environment
  const bool has_host = words.count("host") != 0 || words.count("hostaddr") != 0;
  const Options defaults(PQconndefaults(), PQconninfoFree);
  for (const PQconninfoOption* each = defaults.get(); each != nullptr && each->keyword != nullptr; ++each) {
    const std::string_view keyword = each->keyword;
    if (std::find(std::begin(kOfPlace), std::end(kOfPlace), keyword) == std::end(kOfPlace)) continue;
    if (has_host && keyword == "host") continue;
    if (each->val != nullptr && each->val[0] != '\0') words.emplace(each->keyword, each->val);
  }
}

}  // namespace

Result<Target> TargetOf(const std::string& text) {
  const Options options(PQconninfoParse(text.c_str(), nullptr), PQconninfoFree);
  if (options == nullptr) {
    return Error{ErrorCode::kConfiguration, "AP502",
                 "no server's URL: '" + WithoutCredentials(text) + "'; want postgresql://host:5432/database"};
  }
  Target target;
  target.words = KeptWrite(options.get());
  AddDefaults(target.words);
  const std::string host = Word(target.words, "host");
  const std::string address = Word(target.words, "hostaddr");
  target.several = Divided(address.empty() ? host : address).size() > 1;
  target.address = AddressOf(target.words, address.empty() ? host : address, Word(target.words, "port"));
  return target;
}

Target TargetOf(PGconn* connection) {
  const Options options(PQconninfo(connection), PQconninfoFree);
  Target target;
  target.words = KeptWrite(options.get());
  const std::string host = Text(PQhost(connection));
  const std::string port = Text(PQport(connection));
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) target.words[key] = value;
  };
  set("host", host);
  set("port", port);
  set("user", Text(PQuser(connection)));
  set("dbname", Text(PQdb(connection)));
  set("password", Text(PQpass(connection)));
  const bool has_address = target.words.count("hostaddr") != 0;
  if (has_address) target.words["hostaddr"] = Text(PQhostaddr(connection));
  target.address = AddressOf(target.words, has_address ? target.words["hostaddr"] : host, port);
  return target;
}

Result<Target> TargetOf(const std::any& what) {
  if (const auto* target = std::any_cast<Target>(&what)) return *target;
  if (const auto* text = std::any_cast<std::string>(&what)) return TargetOf(*text);
  if (const auto* text = std::any_cast<const char*>(&what)) return TargetOf(std::string(*text));
  return Error{ErrorCode::kConfiguration, "AP502", "a PostgreSQL server is named by its URL or connection string"};
}

}  // namespace antipode::postgresql
