#include "broker.h"

#include <amqp_tcp_socket.h>
#include <strings.h>

#include <cctype>
#include <charconv>
#include <memory>
#include <utility>

#include "octets.h"

namespace antipode::rabbitmq {
namespace {

constexpr int kFrameMax = 131072;

Error Refuse(const std::string& words) { return {ErrorCode::kConfiguration, "AP502", words}; }

bool BeginsWith(std::string_view text, const char* scheme) {
  const std::size_t length = std::char_traits<char>::length(scheme);
  return text.size() >= length && strncasecmp(text.data(), scheme, length) == 0;
}

int HeartbeatIn(std::string_view query, int otherwise) {
  constexpr std::string_view kName = "heartbeat=";
  const std::size_t at = query.find(kName);
  if (at == std::string_view::npos) return otherwise;
  const std::string_view text = query.substr(at + kName.size());
  int found = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), found);
  return found < 0 || found > 65535 ? otherwise : found;
}

// What rabbitmq-c does not say of itself: without it a broker ends consumers in silence.
class Capabilities {
 public:
  Capabilities() {
    notified_.key = Octets("consumer_cancel_notify");
    notified_.value.kind = AMQP_FIELD_KIND_BOOLEAN;
    notified_.value.value.boolean = 1;
    capabilities_.key = Octets("capabilities");
    capabilities_.value.kind = AMQP_FIELD_KIND_TABLE;
    capabilities_.value.value.table = {1, &notified_};
  }
  amqp_table_t table() { return {1, &capabilities_}; }

 private:
  amqp_table_entry_t notified_{};
  amqp_table_entry_t capabilities_{};
};

Failure FailureOf(const amqp_rpc_reply_t& answer) {
  if (answer.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && answer.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto& said = *static_cast<const amqp_connection_close_t*>(answer.reply.decoded);
    return {true, said.reply_code, std::to_string(said.reply_code) + " " + std::string(View(said.reply_text))};
  }
  if (answer.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && answer.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto& said = *static_cast<const amqp_channel_close_t*>(answer.reply.decoded);
    return {true, said.reply_code, std::to_string(said.reply_code) + " " + std::string(View(said.reply_text))};
  }
  return {false, 0, amqp_error_string2(answer.library_error)};
}

}  // namespace

Result<Place> Place::Parse(const std::string& url) {
  if (BeginsWith(url, "amqps://")) {
    return Refuse(
        "amqps:// is not connected to by Antipode's C++ part: make the connection with rabbitmq-c (amqp_ssl_socket.h), "
        "and give it to Wrap()");
  }
  if (!BeginsWith(url, "amqp://")) return Refuse("want an AMQP URL, amqp://user:password@host:port/vhost");
  const std::size_t tail = url.find_first_of("?#");
  std::string text = "amqp" + url.substr(4, tail == std::string::npos ? tail : tail - 4);
  if (!text.empty() && text.back() == '/' && text.size() > 7) text.pop_back();  // pika's default virtual host, not ""
  amqp_connection_info info{};
  if (amqp_parse_url(text.data(), &info) != AMQP_STATUS_OK) {
    return Refuse("an AMQP URL cannot be read: want amqp://user:password@host:port/vhost");
  }
  Place place;
  place.host = info.host;
  place.port = info.port;
  place.user = info.user;
  place.password = info.password;
  place.vhost = info.vhost;
  if (tail != std::string::npos) place.heartbeat = HeartbeatIn(std::string_view(url).substr(tail), place.heartbeat);
  return place;
}

std::string Place::Address() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return "amqp://" + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/" + Quoted(vhost);
}

std::variant<amqp_connection_state_t, Failure> Open(const Place& place, std::chrono::nanoseconds timeout) {
  struct Destroy {
    void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
  };
  std::unique_ptr<amqp_connection_state_t_, Destroy> made(amqp_new_connection());
  amqp_socket_t* const socket = made == nullptr ? nullptr : amqp_tcp_socket_new(made.get());
  if (socket == nullptr) return Failure{false, 0, "memory is short"};
  const timeval limit = TimevalOf(timeout);
  const int opened = amqp_socket_open_noblock(socket, place.host.c_str(), place.port, &limit);
  if (opened != AMQP_STATUS_OK) return Failure{false, 0, amqp_error_string2(opened)};
  amqp_set_handshake_timeout(made.get(), &limit);
  amqp_set_rpc_timeout(made.get(), &limit);
  Capabilities capabilities;
  const amqp_table_t properties = capabilities.table();
  const amqp_rpc_reply_t login =
      amqp_login_with_properties(made.get(), place.vhost.c_str(), 0, kFrameMax, place.heartbeat, &properties,
                                 AMQP_SASL_METHOD_PLAIN, place.user.c_str(), place.password.c_str());
  if (login.reply_type != AMQP_RESPONSE_NORMAL) return FailureOf(login);
  amqp_channel_open(made.get(), 1);
  const amqp_rpc_reply_t channel = amqp_get_rpc_reply(made.get());
  if (channel.reply_type != AMQP_RESPONSE_NORMAL) return FailureOf(channel);
  return made.release();
}

std::string Quoted(std::string_view text) {
  std::string quoted;
  for (const char each : text) {
    const auto octet = static_cast<unsigned char>(each);
    if (std::isalnum(octet) != 0 || each == '-' || each == '.' || each == '_' || each == '~') {
      quoted += each;
    } else {
      quoted += '%';
      quoted += "0123456789ABCDEF"[octet >> 4];
      quoted += "0123456789ABCDEF"[octet & 15];
    }
  }
  return quoted;
}

std::string Unquoted(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned octet = 0;
    if (text[at] == '%' && at + 2 < text.size() &&
        std::from_chars(text.data() + at + 1, text.data() + at + 3, octet, 16).ptr == text.data() + at + 3) {
      plain += static_cast<char>(octet);
      at += 2;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

Result<Tap> Tap::Parse(std::string_view text) {
  const std::size_t hash = text.find('#');
  const bool is_amqp = BeginsWith(text, "amqp://") || BeginsWith(text, "amqps://");
  if (!is_amqp || hash == std::string_view::npos || hash + 1 == text.size()) {
    return Refuse(
        "a tap is an AMQP URL with its stream queue behind #, such as amqp://broker/%2F#notifications.tap, or "
        "antipode::rabbitmq::Tap{url, queue}");
  }
  return Tap{std::string(text.substr(0, hash)), Unquoted(text.substr(hash + 1))};
}

std::string Tap::Broker() const {
  const Result<Place> place = Place::Parse(url);
  return place.ok() ? place->Address() : std::string("broker");
}

std::string Tap::Address() const { return Broker() + "#" + Quoted(queue); }

Result<Tap> TapOf(const std::any& target) {
  if (const auto* tap = std::any_cast<Tap>(&target)) return *tap;
  if (const auto* text = std::any_cast<std::string>(&target)) return Tap::Parse(*text);
  return Refuse("a tap is a text or an antipode::rabbitmq::Tap");
}

}  // namespace antipode::rabbitmq
