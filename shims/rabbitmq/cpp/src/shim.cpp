#include "shim.h"

#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "antipode/rabbitmq.h"
#include "antipode/shim/server.h"
#include "antipode/store.h"
#include "broker.h"
#include "reader.h"
#include "tap_memory.h"

namespace antipode::rabbitmq {
namespace {

constexpr std::size_t kOwnRemembered = kRemembered / 5;
constexpr const char* kNoMark = "messages have opaque marks; this identifier was not made by a RabbitMQ shim";
constexpr std::size_t kLongestKey = 80;  // in words for a person

std::string Words(const WriteId& write_id) { return write_id.key().substr(0, kLongestKey); }

// The memory of one tap in this process, and its connection while somebody waits.
struct Session {
  explicit Session(Tap of) : tap(std::move(of)), broker(tap.Broker()), memory(tap.remember) {}

  const Tap tap;
  const std::string broker;
  TapMemory memory;
  std::unique_ptr<TapReader> reader;
};
using SessionPtr = std::shared_ptr<Session>;

// None at first, and in the child of a fork.
Result<SessionPtr> SessionOf(Server& server) {
  if (const auto* session = std::any_cast<SessionPtr>(&server.session)) return *session;
  Result<Tap> tap = TapOf(server.target());
  if (!tap.ok()) return tap.error();
  auto session = std::make_shared<Session>(*std::move(tap));
  server.session = session;
  return session;
}

// The push of a tap: its connection's socket. It belongs to the session, which a fork leaves.
class TapWatch final : public Watch {
 public:
  TapWatch(const SessionPtr& session, std::function<void()> on_change)
      : session_(session), on_change_(std::move(on_change)) {}

  int Descriptor() const noexcept override {
    const SessionPtr session = session_.lock();
    return session != nullptr && session->reader != nullptr ? session->reader->socket() : -1;
  }

  Result<void> Pump() override {
    const SessionPtr session = session_.lock();
    if (session == nullptr || session->reader == nullptr) return {};
    // Where it failed whoever waits asks again, and so learns of it.
    if (session->reader->Pump() || session->reader->failure()) on_change_();
    return {};
  }

 private:
  const std::weak_ptr<Session> session_;
  const std::function<void()> on_change_;
};

Answers Failed(const Failure& failure) {
  return failure.by_broker ? Answers::Refused(failure.words) : Answers::Unreachable(failure.words);
}

}  // namespace

ShimType RabbitMQType() { return ShimType::Of<RabbitMQShim>("rabbitmq"); }

Capabilities RabbitMQShim::capabilities() const {
  return Capabilities::Opaques().Push(true).RestsIn({Rest::kNative}).Tap(true);
}

Answers RabbitMQShim::Visible(Span<const WriteId> ids, Server& server) {
  std::vector<Visibility> answers;
  answers.reserve(ids.size());
  if (const auto* const own = std::any_cast<OwnBroker>(&server.target())) {
    for (const WriteId& write_id : ids) answers.push_back(WithoutTap(write_id, own->address, server.store().name()));
    return answers;
  }
  const Result<SessionPtr> session = SessionOf(server);
  if (!session.ok()) return Answers::Refused(session.error().Words());
  if ((*session)->reader == nullptr) return Answers::Unreachable("the tap is not being read");
  TapReader& reader = *(*session)->reader;
  reader.Check();
  if (reader.failure()) return Failed(*reader.failure());
  for (const WriteId& write_id : ids) {
    const Opaque* const version = write_id.opaque();
    if (version == nullptr) {
      answers.push_back(Visibility::Unproven(kNoMark));
    } else if ((*session)->memory.Want(version->mark) || WasConsumed(version->mark, (*session)->broker)) {
      answers.push_back(Visibility::Visible());
    } else {
      answers.push_back(Visibility::NotYet("a message to " + Words(write_id) + " is not among the last " +
                                           std::to_string((*session)->memory.size()) + " of " + (*session)->tap.queue));
    }
  }
  return answers;
}

Visibility RabbitMQShim::WithoutTap(const WriteId& write_id, const std::string& broker,
                                    const std::string& store) const {
  if (write_id.opaque() == nullptr) return Visibility::Unproven(kNoMark);
  if (WasConsumed(write_id.opaque()->mark, broker)) return Visibility::Visible();
  return Visibility::Unproven(
      "nobody can tell whether a message to " + Words(write_id) + " has arrived: this process reads no tap of " +
      store + " at " + broker + "; give it one by antipode::rabbitmq::Register(Options(\"" + store +
      "\").Taps({…})), or, where nobody reads there, give Wrap() the taps of where readers are, too");
}

Result<std::unique_ptr<Watch>> RabbitMQShim::OpenWatch(Server& server, std::function<void()> on_change) {
  if (std::any_cast<OwnBroker>(&server.target()) != nullptr) return std::unique_ptr<Watch>();
  const Result<SessionPtr> session = SessionOf(server);
  if (!session.ok()) throw std::runtime_error(session.error().Words());  // the engine's `Refused`
  auto opened = TapReader::Open((*session)->tap, (*session)->memory, server.AskTimeout());
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    if (failure->by_broker) throw std::runtime_error(failure->words);
    return Error{ErrorCode::kUnfitStore, "AP204", failure->words};
  }
  (*session)->reader = std::get<std::unique_ptr<TapReader>>(std::move(opened));
  return std::unique_ptr<Watch>(std::make_unique<TapWatch>(*session, std::move(on_change)));
}

// Gives up the connection; what has arrived is not forgotten with it.
void RabbitMQShim::Close(Server& server) noexcept {
  if (const auto* session = std::any_cast<SessionPtr>(&server.session)) (*session)->reader.reset();
}

std::string RabbitMQShim::Address(const std::any& target) const {
  if (const auto* own = std::any_cast<OwnBroker>(&target)) return own->address;
  const Result<Tap> tap = TapOf(target);
  return tap.ok() ? tap->Address() : std::string("tap");
}

bool RabbitMQShim::SpeaksFor(const std::any& /*listed*/, const std::any& own) const {
  return std::any_cast<OwnBroker>(&own) != nullptr;
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
