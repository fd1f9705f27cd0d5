// The queue by rabbitmq-c alone.
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

#include <utility>
#include <vector>

#include "queue_clients.h"

namespace services {
namespace {

constexpr amqp_channel_t kChannel = 1;
constexpr int kFrame = 131072;
constexpr int kConfirmTimeoutS = 30;

void Check(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  std::string words = "RabbitMQ: " + std::string(what);
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
    words += std::string(": ") + amqp_error_string2(reply.library_error);
  }
  throw Failure(words);
}

void Check(int status, const char* what) {
  if (status < 0) throw Failure("RabbitMQ: " + std::string(what) + ": " + amqp_error_string2(status));
}

// A connection with one channel.
class Link {
 public:
  explicit Link(std::string url) : state_(amqp_new_connection(), amqp_destroy_connection) {
    amqp_connection_info info{};
    if (amqp_parse_url(url.data(), &info) != AMQP_STATUS_OK) throw Failure("RabbitMQ: that is no URL of a broker");
    amqp_socket_t* socket = amqp_tcp_socket_new(get());  // the connection's own
    Check(amqp_socket_open(socket, info.host, info.port), "connecting");
    Check(amqp_login(get(), info.vhost, 0, kFrame, 0, AMQP_SASL_METHOD_PLAIN, info.user, info.password), "login");
    amqp_channel_open(get(), kChannel);
    Answered("opening a channel");
  }

  amqp_connection_state_t get() const { return state_.get(); }
  void Answered(const char* what) const { Check(amqp_get_rpc_reply(get()), what); }

 private:
  using State = std::remove_pointer_t<amqp_connection_state_t>;
  const std::unique_ptr<State, decltype(&amqp_destroy_connection)> state_;
};

class PlainPublisher : public Publisher {
 public:
  explicit PlainPublisher(const std::string& url) : link_(url) {
    amqp_confirm_select(link_.get(), kChannel);
    link_.Answered("confirm.select");
  }

  void Publish(const std::string& exchange, const MessageHeaders& headers, const std::string& body) override {
    const HeaderTable table(headers);
    const amqp_basic_properties_t properties = table.Properties();
    Check(
        amqp_basic_publish(link_.get(), kChannel, Octets(exchange), amqp_empty_bytes, 1, 0, &properties, Octets(body)),
        "publishing");
    AwaitConfirm();
  }

 private:
  void AwaitConfirm() {
    bool returned = false;
    timeval timeout{kConfirmTimeoutS, 0};
    for (;;) {
      amqp_maybe_release_buffers(link_.get());
      amqp_frame_t frame{};
      Check(amqp_simple_wait_frame_noblock(link_.get(), &frame, &timeout), "waiting for the confirmation");
      if (frame.frame_type != AMQP_FRAME_METHOD) continue;
      if (frame.payload.method.id == AMQP_BASIC_RETURN_METHOD) {
        amqp_message_t message{};
        Check(amqp_read_message(link_.get(), kChannel, &message, 0), "reading what came back");
        amqp_destroy_message(&message);
        returned = true;
      } else if (frame.payload.method.id == AMQP_BASIC_ACK_METHOD) {
        if (returned) throw Failure("RabbitMQ: no queue takes the message");
        return;
      } else {
        throw Failure("RabbitMQ: the message was not confirmed");
      }
    }
  }

  const Link link_;
};

class PlainConsumer : public Consumer {
 public:
  PlainConsumer(const std::string& url, const std::string& queue) : link_(url) {
    amqp_basic_qos(link_.get(), kChannel, 0, 1, 0);
    link_.Answered("basic.qos");
    amqp_basic_consume(link_.get(), kChannel, Octets(queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    link_.Answered("basic.consume");
  }

  void Run(const HandleMessage& handle) override {
    for (;;) {
      amqp_maybe_release_buffers(link_.get());
      amqp_envelope_t envelope{};
      Check(amqp_consume_message(link_.get(), &envelope, nullptr, 0), "consuming");
      const std::unique_ptr<amqp_envelope_t, decltype(&amqp_destroy_envelope)> freed(&envelope, amqp_destroy_envelope);
      handle(TextsOf(envelope.message.properties), Text(envelope.message.body));
      Check(amqp_basic_ack(link_.get(), kChannel, envelope.delivery_tag, 0), "acknowledging");
    }
  }

 private:
  const Link link_;
};

}  // namespace

std::unique_ptr<Publisher> PlainPublisherTo(const std::string& url) { return std::make_unique<PlainPublisher>(url); }

std::unique_ptr<Consumer> PlainConsumerOf(const std::string& url, const std::string& queue) {
  return std::make_unique<PlainConsumer>(url, queue);
}

}  // namespace services
