// What the queue's two clients share: texts and headers as rabbitmq-c has them.
#ifndef ANTIPODE_EXAMPLES_SERVICES_QUEUE_CLIENTS_H_
#define ANTIPODE_EXAMPLES_SERVICES_QUEUE_CLIENTS_H_

#include <amqp.h>
#include <amqp_framing.h>

#include <memory>
#include <string>
#include <vector>

#include "queue.h"

namespace services {

// These refer to the text and copy nothing.
amqp_bytes_t Octets(const std::string& text);
std::string Text(const amqp_bytes_t& octets);

// The headers of a message that came, as far as they are texts.
MessageHeaders TextsOf(const amqp_basic_properties_t& properties);

// Headers as rabbitmq-c takes them; they must stay while this is used.
class HeaderTable {
 public:
  explicit HeaderTable(const MessageHeaders& headers);
  // Of a message that is not kept on disk.
  amqp_basic_properties_t Properties() const;

 private:
  std::vector<amqp_table_entry_t> entries_;
};

std::unique_ptr<Publisher> PlainPublisherTo(const std::string& url);
std::unique_ptr<Consumer> PlainConsumerOf(const std::string& url, const std::string& queue);
std::unique_ptr<Publisher> WrappedPublisherTo(const std::string& url);
std::unique_ptr<Consumer> WrappedConsumerOf(const std::string& url, const std::string& queue);

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_QUEUE_CLIENTS_H_
