// The broker's queue, by its plain client or by Antipode's shim round it.
#ifndef ANTIPODE_EXAMPLES_SERVICES_QUEUE_H_
#define ANTIPODE_EXAMPLES_SERVICES_QUEUE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "setup.h"

namespace services {

using MessageHeaders = std::map<std::string, std::string>;

// A connection to region A's broker, for one thread at a time. What fails throws; the connection is of no use then.
class Publisher {
 public:
  virtual ~Publisher() = default;
  // Publishes a message that is not kept on disk, and returns when the broker has confirmed that a queue has it.
  virtual void Publish(const std::string& exchange, const MessageHeaders& headers, const std::string& body) = 0;
};

// Takes a message's headers and body; with Antipode it runs in the message's own scope.
using HandleMessage = std::function<void(const MessageHeaders&, const std::string&)>;

// A connection to region B's broker that consumes, for one thread.
class Consumer {
 public:
  virtual ~Consumer() = default;
  // Hands over one message after the other, and acknowledges each; throws where the broker ends it.
  virtual void Run(const HandleMessage& handle) = 0;
};

std::unique_ptr<Publisher> ConnectPublisher(const Setup& setup);
std::unique_ptr<Consumer> ConnectConsumer(const Setup& setup);

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_QUEUE_H_
