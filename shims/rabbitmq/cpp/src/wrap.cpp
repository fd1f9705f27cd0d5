// `Wrap`, `Connect`, `Register`: a connection that carries lineages, and a store that is only waited for.
#include <netinet/in.h>
#include <arpa/inet.h>
#include <sys/socket.h>

#include <memory>
#include <utility>

#include "antipode/rabbitmq.h"
#include "broker.h"
#include "inside.h"
#include "octets.h"
#include "shim.h"

namespace antipode::rabbitmq {
namespace {

constexpr Duration kLongestDelay = std::chrono::hours(24);

Error Refuse(std::string message) { return {ErrorCode::kConfiguration, std::move(message), nullptr}; }

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
  if (options.redeliver_delay && (*options.redeliver_delay < Duration::zero() || *options.redeliver_delay >= kLongestDelay)) {
    return Refuse("RedeliverDelay(): want a duration, at least 0 and less than a day");
  }
  if (options.call_timeout <= Duration::zero()) return Refuse("CallTimeout(): want a duration of more than 0");
  if (options.rest && *options.rest != "none") {
    return Refuse("RestIn(\"" + *options.rest + "\"): a message's lineage is in its header, always; want \"none\"");
  }
  return {};
}

Result<std::shared_ptr<Store>> Join(const Options& options) {
  if (auto checked = Check(options); !checked.ok()) return checked.error();
  for (const std::any& target : options.replicas.value_or(Targets())) {
    auto tap = TapOf(target);
    if (!tap.ok()) return tap.error();
  }
  return JoinStore(RabbitMQType(), options);
}

}  // namespace

Result<Connection> Wrap(amqp_connection_state_t connection, const Options& options) {
  Owned owned(connection);
  if (connection == nullptr || amqp_get_sockfd(connection) < 0) {
    return Refuse("Wrap() takes a connection of rabbitmq-c that is open, after amqp_login");
  }
  std::string address = PeerOf(amqp_get_sockfd(connection));
  if (!options.url.empty()) {
    const Result<Place> place = Place::Parse(options.url);
    if (!place.ok()) return place.error();
    address = place->Address();
  }
  auto joined = Join(options);
  if (!joined.ok()) return joined.error();
  (*joined)->UseServer(std::any(OwnBroker{address}), address);
  auto told = std::make_shared<Told>();
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
  return Connection(std::make_unique<Connection::Inside>(owned.release(), std::move(told), options.call_timeout));
}

Result<Connection> Connect(const std::string& url, Options options) {
  if (auto checked = Check(options); !checked.ok()) return checked.error();
  const Result<Place> place = Place::Parse(url);
  if (!place.ok()) return place.error();
  auto opened = Open(*place, options.call_timeout);
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    return Refuse("Connect(): " + place->Address() + (failure->by_broker ? " refuses: " : " cannot be reached: ") + failure->words);
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
