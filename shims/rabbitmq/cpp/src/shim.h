// The shim: whether a tracked message has arrived in a region, as far as somebody here can see it (spec SHIM).
#ifndef ANTIPODE_RABBITMQ_SHIM_H_
#define ANTIPODE_RABBITMQ_SHIM_H_

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "antipode/shim/shim.h"
#include "marks.h"

namespace antipode::rabbitmq {

// A broker that this process consumes from or publishes to, without a tap.
struct OwnBroker {
  std::string address;
};

// A message is visible at a broker when the broker has got it: its tap gave it, or it was consumed here. That does not
// end: a message that has arrived stays arrived, also after it was consumed.
class RabbitMQShim : public Shim {
 public:
  Capabilities capabilities() const override;
  Answers Visible(Span<const WriteId> ids, Server& server) override;
  Result<std::unique_ptr<Watch>> OpenWatch(Server& server, std::function<void()> on_change) override;
  void Close(Server& server) noexcept override;
  std::string Address(const std::any& target) const override;
  // Nobody reads data at a broker: taps alone say where messages are waited for (BAR-22).
  bool SpeaksFor(const std::any& listed, const std::any& own) const override;

  // A tracked message was consumed by this process from this broker.
  void Arrived(const std::string& broker, const std::string& mark);

 private:
  Visibility WithoutTap(const WriteId& write_id, const std::string& broker, const std::string& store) const;
  bool WasConsumed(const std::string& mark, const std::string& broker) const;

  mutable std::mutex mutex_;
  std::map<std::string, Marks> arrived_;
};

// `rabbitmq`, as the registry knows it.
ShimType RabbitMQType();

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_SHIM_H_
