// Reaching a broker: what its URL says, and a connection that is made within a time.
#ifndef ANTIPODE_RABBITMQ_BROKER_H_
#define ANTIPODE_RABBITMQ_BROKER_H_

#include <amqp.h>

#include <any>
#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include "antipode/rabbitmq.h"
#include "antipode/result.h"

namespace antipode::rabbitmq {

// A broker and a virtual host, as its URL names them.
struct Place {
  std::string host = "localhost";
  int port = 5672;
  std::string user = "guest";
  std::string password = "guest";
  std::string vhost = "/";
  int heartbeat = 60;

  // kConfiguration for what is no AMQP URL, and for `amqps`, which needs a connection that the application makes.
  static Result<Place> Parse(const std::string& url);
  // `amqp://host:port/vhost`, without credentials.
  std::string Address() const;
};

// Why a broker could not be reached, or refused.
struct Failure {
  bool by_broker = false;
  int code = 0;
  std::string words;
};

// A connection with the login done and channel 1 open; the caller's to destroy.
std::variant<amqp_connection_state_t, Failure> Open(const Place& place, std::chrono::nanoseconds timeout);

// Octets that stand in URLs as they are, and others as %XX.
std::string Quoted(std::string_view text);
std::string Unquoted(std::string_view text);

// A tap as it is given in code (`Tap`) or by text, `ANTIPODE_STORE_<NAME>_REPLICAS`; kConfiguration.
Result<Tap> TapOf(const std::any& target);

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_BROKER_H_
