#include "shim.h"

#include <utility>
#include <vector>

#include "antipode/rabbitmq.h"
#include "antipode/server.h"
#include "antipode/store.h"
#include "broker.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::size_t kOwnRemembered = kRemembered / 5;
constexpr std::size_t kLongestKey = 80;  // in words for a person

std::string Words(const WriteId& write_id) { return write_id.key().substr(0, kLongestKey); }

}  // namespace

ShimType RabbitMQType() { return ShimType::Of<RabbitMQShim>("rabbitmq"); }

Capabilities RabbitMQShim::capabilities() const {
  return Capabilities::Opaques().Push(true).RestsIn({Rest::kNative}).Tap(true);
}

Answers RabbitMQShim::Visible(Span<const WriteId> ids, Server& server) {
  const auto* const own = std::any_cast<OwnBroker>(&server.target());
  if (own == nullptr) return Answers::Refused("the tap is not being read");
  std::vector<Visibility> answers;
  answers.reserve(ids.size());
  for (const WriteId& write_id : ids) {
    if (write_id.opaque() == nullptr) {
      answers.push_back(Visibility::Unproven("messages have opaque marks; this identifier was not made by a RabbitMQ shim"));
    } else if (WasConsumed(write_id.opaque()->mark, own->address)) {
      answers.push_back(Visibility::Visible());
    } else {
      const std::string& name = server.store().name();
      answers.push_back(Visibility::Unproven("nobody can tell whether a message to " + Words(write_id) +
                                             " has arrived: this process reads no tap of " + name +
                                             "; give it one by antipode::rabbitmq::Register(Options(\"" + name +
                                             "\").Taps({…}))"));
    }
  }
  return answers;
}

Result<std::unique_ptr<Watch>> RabbitMQShim::OpenWatch(Server& /*server*/, std::function<void()> /*on_change*/) {
  return std::unique_ptr<Watch>();
}

void RabbitMQShim::Close(Server& server) noexcept { server.session.reset(); }

std::string RabbitMQShim::Address(const std::any& target) const {
  if (const auto* own = std::any_cast<OwnBroker>(&target)) return own->address;
  const Result<Tap> tap = TapOf(target);
  return tap.ok() ? tap->Address() : std::string("tap");
}

void RabbitMQShim::Arrived(const std::string& broker, const std::string& mark) {
  const std::lock_guard<std::mutex> lock(mutex_);
  arrived_.try_emplace(broker, kOwnRemembered).first->second.Add(mark);
}

bool RabbitMQShim::WasConsumed(const std::string& mark, const std::string& broker) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = arrived_.find(broker);
  return found != arrived_.end() && found->second.Has(mark);
}

}  // namespace antipode::rabbitmq
