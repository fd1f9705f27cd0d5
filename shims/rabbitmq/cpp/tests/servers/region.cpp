#include "region.h"

#include <poll.h>

#include <atomic>
#include <random>
#include <stdexcept>
#include <thread>

#include "broker.h"
#include "headers.h"
#include "octets.h"

namespace antipode::rabbitmq {
namespace {

std::unique_ptr<lab::Lab> the_lab;

class EndsLab : public ::testing::Environment {
 public:
  void TearDown() override { the_lab.reset(); }
};

const auto* const kEnvironment = ::testing::AddGlobalTestEnvironment(new EndsLab);

void Check(amqp_rpc_reply_t reply, const std::string& what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  std::string words = amqp_error_string2(reply.library_error);
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    words = View(static_cast<const amqp_channel_close_t*>(reply.reply.decoded)->reply_text);
  }
  throw std::runtime_error(what + ": " + words);
}

// Texts as a table; numbers of the broker's own arguments as numbers.
struct Table {
  explicit Table(const Headers& headers) {
    for (const auto& [name, text] : headers) {
      amqp_table_entry_t entry{};
      entry.key = Octets(name);
      const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
      if (is_number && name.rfind("x-", 0) == 0) {
        entry.value.kind = AMQP_FIELD_KIND_I64;
        entry.value.value.i64 = std::stoll(text);
      } else {
        entry.value.kind = AMQP_FIELD_KIND_UTF8;
        entry.value.value.bytes = Octets(text);
      }
      entries.push_back(entry);
    }
  }
  amqp_table_t get() { return {static_cast<int>(entries.size()), entries.data()}; }
  std::vector<amqp_table_entry_t> entries;
};

}  // namespace

lab::Lab& TheLab() {
  if (the_lab == nullptr) {
    the_lab = std::make_unique<lab::Lab>(lab::Words{"rabbitmq"},
                                         lab::Options{1, {"0ms"}, {{"rabbitmq", {{"one_broker", true}}}}});
  }
  return *the_lab;
}

bool Until(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

bool Heard(const Connection& connection) {
  pollfd waited{amqp_get_sockfd(connection.state()), POLLIN, 0};
  return poll(&waited, 1, 10000) == 1;
}

std::string NewName(const std::string& word) {
  static std::atomic<int> count{0};
  static const unsigned run = std::random_device{}();
  return word + "-" + std::to_string(run) + "-" + std::to_string(++count);
}

Plain::Plain(const std::string& url) {
  auto opened = Open(*Place::Parse(url), 10s);
  if (const auto* failure = std::get_if<Failure>(&opened)) throw std::runtime_error("no connection: " + failure->words);
  state_ = std::get<amqp_connection_state_t>(opened);
}

Plain::~Plain() {
  amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
  amqp_destroy_connection(state_);
}

void Plain::Declare(const std::string& queue, const Headers& arguments) {
  Table table(arguments);
  amqp_queue_declare(state_, 1, Octets(queue), 0, 1, 0, 0, table.get());
  Check(amqp_get_rpc_reply(state_), "queue.declare");
}

void Plain::Bind(const std::string& queue, const std::string& exchange, const std::string& key) {
  amqp_queue_bind(state_, 1, Octets(queue), Octets(exchange), Octets(key), amqp_empty_table);
  Check(amqp_get_rpc_reply(state_), "queue.bind");
}

void Plain::DeclareExchange(const std::string& exchange, const std::string& kind) {
  amqp_exchange_declare(state_, 1, Octets(exchange), Octets(kind), 0, 0, 1, 0, amqp_empty_table);
  Check(amqp_get_rpc_reply(state_), "exchange.declare");
}

void Plain::Delete(const std::string& queue) {
  amqp_queue_delete(state_, 1, Octets(queue), 0, 0);
  Check(amqp_get_rpc_reply(state_), "queue.delete");
}

void Plain::Purge(const std::string& queue) {
  amqp_queue_purge(state_, 1, Octets(queue));
  Check(amqp_get_rpc_reply(state_), "queue.purge");
}

int Plain::Count(const std::string& queue) {
  const amqp_queue_declare_ok_t* const found =
      amqp_queue_declare(state_, 1, Octets(queue), 1, 1, 0, 0, amqp_empty_table);
  Check(amqp_get_rpc_reply(state_), "queue.declare");
  return static_cast<int>(found->message_count);
}

void Plain::Publish(const std::string& exchange, const std::string& key, const std::string& body,
                    const Headers& headers, const std::string& message_id) {
  Table table(headers);
  amqp_basic_properties_t properties{};
  if (!headers.empty()) properties._flags |= AMQP_BASIC_HEADERS_FLAG;
  properties.headers = table.get();
  if (!message_id.empty()) {
    properties._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    properties.message_id = Octets(message_id);
  }
  if (amqp_basic_publish(state_, 1, Octets(exchange), Octets(key), 0, 0, &properties, Octets(body)) != AMQP_STATUS_OK) {
    throw std::runtime_error("basic.publish");
  }
}

std::optional<PlainMessage> Plain::Take(const std::string& queue) {
  amqp_maybe_release_buffers(state_);
  const amqp_rpc_reply_t reply = amqp_basic_get(state_, 1, Octets(queue), 1);
  Check(reply, "basic.get");
  if (reply.reply.id != AMQP_BASIC_GET_OK_METHOD) return std::nullopt;
  PlainMessage message;
  message.routing_key = View(static_cast<const amqp_basic_get_ok_t*>(reply.reply.decoded)->routing_key);
  amqp_message_t taken;
  Check(amqp_read_message(state_, 1, &taken, 0), "read");
  message.body = View(taken.body);
  TableCarrier(HeadersOf(&taken.properties)).ForEach([&](std::string_view name, std::string_view value) {
    message.headers.emplace_back(name, value);
  });
  if ((taken.properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0) {
    message.message_id = View(taken.properties.message_id);
  }
  std::string encoded(131072, '\0');
  const int length = amqp_encode_properties(AMQP_BASIC_CLASS, &taken.properties, {encoded.size(), encoded.data()});
  if (length > 0) message.properties = encoded.substr(0, static_cast<std::size_t>(length));
  amqp_destroy_message(&taken);
  return message;
}

PlainMessage Plain::Get(const std::string& queue) {
  std::optional<PlainMessage> found;
  EXPECT_TRUE(Until([&] { return (found = Take(queue)).has_value(); })) << "no message comes to " << queue;
  return found.value_or(PlainMessage());
}

Link::Link(const std::string& region) : name_(NewName("test")) {
  const lab::Server server = TheLab().server("rabbitmq", region);
  const int port = TheLab().Do("rabbitmq", "context.toxiproxy.create", {name_, server.port}).get<int>();
  url_ = server.url;
  const std::string before = ":" + std::to_string(server.port) + "/";
  url_.replace(url_.find(before), before.size(), ":" + std::to_string(port) + "/");
}

void Link::Cut() { TheLab().Do("rabbitmq", "context.toxiproxy.set_enabled", {name_, false}); }

void Link::Silence() { TheLab().Do("rabbitmq", "context.toxiproxy.set_lag", {name_, 3600000}); }

void Link::HoldAnswers() { TheLab().Do("rabbitmq", "context.toxiproxy.hold_answers", {name_}); }

void Link::Heal() {
  TheLab().Do("rabbitmq", "context.toxiproxy.set_enabled", {name_, true});
  TheLab().Do("rabbitmq", "context.toxiproxy.set_lag", {name_, 0});
}

Region::~Region() {
  for (const std::string& queue : queues_) {
    try {
      own().Delete(queue);
    } catch (const std::runtime_error&) {
      own_.reset();  // it is gone already
    }
  }
}

std::string Region::url() const { return TheLab().server("rabbitmq", name_).url; }

Plain& Region::own() {
  if (own_ == nullptr) own_ = std::make_unique<Plain>(url());
  return *own_;
}

Connection Region::Wrapped(Options options) const {
  auto connected = Connect(url(), std::move(options));
  if (!connected.ok()) throw std::runtime_error(connected.error().message);
  return std::move(connected).value();
}

std::string Region::Queue(const Headers& arguments) {
  std::string name = NewName("q");
  own().Declare(name, arguments);
  queues_.push_back(name);
  return name;
}

std::string Region::Exchange(const std::string& kind) {
  std::string name = NewName("x");
  own().DeclareExchange(name, kind);
  return name;
}

Tap Region::NewTap(const std::string& exchange, const std::string& routing_key) {
  std::string name = NewName("tap");
  own().Declare(name, {{"x-queue-type", "stream"}, {"x-max-length-bytes", "100000000"}});
  own().Bind(name, exchange, routing_key);
  queues_.push_back(name);
  return Tap{url(), name};
}

void Region::Delete(const std::string& queue) { own().Delete(queue); }

}  // namespace antipode::rabbitmq
