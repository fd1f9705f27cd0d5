// `Wrap`, `Connect`, `Register`: a connection that carries lineages, and a store that is only waited for.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <utility>

#include "antipode/logs.h"
#include "antipode/rabbitmq.h"
#include "broker.h"
#include "inside.h"
#include "octets.h"
#include "reader.h"
#include "shim.h"

namespace antipode::rabbitmq {
namespace {

constexpr Duration kProbe = std::chrono::seconds(2);
constexpr Duration kLongestDelay = std::chrono::hours(24);

Error Refuse(MessageCode code, const std::string& words) { return {ErrorCode::kConfiguration, code, words}; }

struct Destroy {
  void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
};
using Owned = std::unique_ptr<amqp_connection_state_t_, Destroy>;

// The broker's address as far as the connection itself knows it: without its virtual host.
std::string PeerOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[INET6_ADDRSTRLEN] = "";
  if (socket < 0 || getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "amqp://broker";
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return "amqp://[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return "amqp://" + std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
}

Result<void> Check(const Options& options) {
  if (options.redeliver_delay &&
      (*options.redeliver_delay < Duration::zero() || *options.redeliver_delay >= kLongestDelay)) {
    return Refuse("AP111", "RedeliverDelay(): want a duration, at least 0 and less than a day");
  }
  if (options.call_timeout <= Duration::zero()) return Refuse("AP501", "CallTimeout(): want a duration of more than 0");
  if (options.rest && *options.rest != "none") {
    return Refuse("AP501",
                  "RestIn(\"" + *options.rest + "\"): a message's lineage is in its header, always; want \"none\"");
  }
  return {};
}

// Asks at once whether a tap can be read; one whose broker does not answer now is asked again when it is waited for.
Result<void> CheckTap(const Options& options, const Tap& tap) {
  const std::optional<Failure> failure = Probe(tap, kProbe);
  if (!failure) return {};
  const std::string address = tap.Address();
  if (!failure->by_broker) {
    logs::Warn("AP507", "unfit " + address,
               "the tap of " + options.name + " at " + address + " does not answer now: " + failure->words);
    return {};
  }
  const Cure cure = CureOf(tap, *failure);
  const std::string words =
      "the tap of " + options.name + " cannot be read: " + cure.what + " at " + address + ".\n  " + cure.cure;
  if (options.on_unfit.value_or(OnUnfit::kRaise) == OnUnfit::kRaise) {
    return Error{ErrorCode::kUnfitStore, "AP208",
                 words + " Until then WhenUnfit(OnUnfit::kUnproven) lets the service start."};
  }
  logs::Warn("AP208", "unfit " + address, words);
  return {};
}

Result<std::shared_ptr<Store>> Join(const Options& options) {
  if (auto checked = Check(options); !checked.ok()) return checked.error();
  for (const std::any& target : options.replicas.value_or(Targets())) {
    auto tap = TapOf(target);
    if (!tap.ok()) return tap.error();
    if (auto place = Place::Parse(tap->url); !place.ok()) return place.error();
    if (auto fit = CheckTap(options, *tap); !fit.ok()) return fit.error();
  }
  return JoinStore(RabbitMQType(), options);
}

}  // namespace

Result<Connection> Wrap(amqp_connection_state_t connection, const Options& options) {
  Owned owned(connection);
  if (connection == nullptr || amqp_get_sockfd(connection) < 0) {
    return Refuse("AP501", "Wrap() takes a connection of rabbitmq-c that is open, after amqp_login");
  }
  std::string address = PeerOf(amqp_get_sockfd(connection));
  if (!options.url.empty()) {
    const Result<Place> place = Place::Parse(options.url);
    if (!place.ok()) return place.error();
    address = place->Address();
  }
  auto joined = Join(options);
  if (!joined.ok()) return joined.error();
  (*joined)->UseServer(options, std::any(OwnBroker{address}), address);
  auto told = std::make_shared<WrapArguments>();
  told->store = *joined;
  told->track = options.track;
  told->stamped = options.stamped;
  told->on_no_room = options.on_no_room;
  told->lineage_in = options.lineage_in;
  told->lineage_out = options.lineage_out;
  told->own_redeliver_delay = options.redeliver_delay;
  told->arrived = [store = *joined, address](const std::string& mark) {
    static_cast<RabbitMQShim&>(store->shim()).Arrived(address, mark);
  };
  auto inside = std::make_unique<Connection::Inside>(owned.release(), std::move(told), options.call_timeout);
  if (const auto& broken = inside->broken()) {
    return Refuse("AP501", "Wrap(): the connection cannot be used: " + broken->words());
  }
  return Connection(std::move(inside));
}

Result<Connection> Connect(const std::string& url, Options options) {
  if (auto checked = Check(options); !checked.ok()) return checked.error();
  const Result<Place> place = Place::Parse(url);
  if (!place.ok()) return place.error();
  auto opened = Open(*place, options.call_timeout);
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    const std::string what = failure->by_broker ? " refuses: " : " cannot be reached: ";
    return Refuse("AP204", "Connect(): " + place->Address() + what + failure->words);
  }
  options.url = url;
  return Wrap(std::get<amqp_connection_state_t>(opened), options);
}

Result<void> Register(const Options& options) {
  auto joined = Join(options);
  if (!joined.ok()) return joined.error();
  return {};
}

}  // namespace antipode::rabbitmq
