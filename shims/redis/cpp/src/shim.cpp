#include "shim.h"

#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/shim/server.h"
#include "judging.h"
#include "probe.h"

namespace antipode::redis {
namespace {

using SessionPtr = std::shared_ptr<Session>;

SessionReply<SessionPtr> Open(const Server& server) {
  const auto target = Target::Of(server.target());
  if (!target.ok()) return Failure{true, target.error().Words()};
  return Session::Open(*target, server.AskTimeout());
}

// A live push channel: the session that `Visible` asks on, too.
class TrackingWatch final : public Watch {
 public:
  TrackingWatch(SessionPtr session, std::function<void()> on_change)
      : session_(std::move(session)), on_change_(std::move(on_change)) {}

  int Descriptor() const noexcept override { return session_->Descriptor(); }

  Result<void> Pump() override {
    auto changed = session_->Pump();
    if (!changed.ok()) return Error{ErrorCode::kUnfitStore, "AP204", changed.failure().words};
    if (*changed) on_change_();
    return {};
  }

 private:
  const SessionPtr session_;
  const std::function<void()> on_change_;
};

}  // namespace

ShimType RedisType() { return ShimType::Of<RedisShim>("redis"); }

RedisShim::~RedisShim() {
  for (const auto& [address, marker] : markers_) marker->Stop();
}

Capabilities RedisShim::capabilities() const {
  return Capabilities::Positions().Push(true).Tombstones(true).RestsIn({Rest::kField, Rest::kEnvelope}).MarkedBy(
      Marks::kInBand);
}

Answers RedisShim::Visible(Span<const WriteId> ids, Server& server) {
  auto session = SessionOf(server);
  if (!session.ok()) {
    const Failure& failure = session.failure();
    if (!failure.by_server) return Answers::Unreachable(failure.words);
    const std::string_view code = failure.Code();
    const bool is_login = code == "NOAUTH" || code == "WRONGPASS";
    return Answers::Refused(failure.words, is_login ? UnprovenKind::kConnection : UnprovenKind::kOther);
  }
  std::set<std::string> epochs;
  for (const WriteId& write_id : ids) {
    if (write_id.is_position() && write_id.ordered() != nullptr) epochs.insert(write_id.ordered()->epoch);
  }
  const std::string key = marks_key();
  auto seen = (*session)->Look({epochs.begin(), epochs.end()}, key);
  if (!seen.ok()) {
    const Failure& failure = seen.failure();
    if (!failure.by_server) return Answers::Unreachable(failure.words);
    if (failure.Code() != "NOPERM") return Answers::Refused(failure.words);
    const auto refused = Visibility::Unproven("its user may not ask where it is (" + failure.words + "). " + Grant(key),
                                             UnprovenKind::kRight);
    return std::vector<Visibility>(ids.size(), refused);
  }
  if ((*session)->cluster()) {
    return std::vector<Visibility>(ids.size(),
                                   Visibility::Unproven("it " + std::string(kCluster), UnprovenKind::kUnfit));
  }
  server.Applied((*session)->run_id(), seen->replication.epoch, seen->Proved());
  std::vector<Visibility> answers;
  answers.reserve(ids.size());
  for (const WriteId& write_id : ids) answers.push_back(Judge(write_id, *seen));
  return answers;
}

Result<std::unique_ptr<Watch>> RedisShim::OpenWatch(Server& server, std::function<void()> on_change) {
  auto session = SessionOf(server);
  if (!session.ok()) {
    if (session.failure().by_server) throw std::runtime_error(session.failure().words);  // the engine's `Refused`
    return Error{ErrorCode::kUnfitStore, "AP204", session.failure().words};
  }
  // The engine closes the session before the server goes.
  (*session)->OnReset([&server] { server.Reset(); });
  auto tracked = (*session)->Track();
  if (tracked.ok()) return std::unique_ptr<Watch>(std::make_unique<TrackingWatch>(*session, std::move(on_change)));
  if (!tracked.failure().by_server) return Error{ErrorCode::kUnfitStore, "AP204", tracked.failure().words};
  logs::Info("AP515", "tracking " + server.address(),
             "client-side tracking is not to be had at " + server.address() + " (" + tracked.failure().words + ")");
  return std::unique_ptr<Watch>();
}

void RedisShim::Close(Server& server) noexcept {
  if (const auto* session = std::any_cast<SessionPtr>(&server.session)) (*session)->OnReset({});
  server.session.reset();
}

std::any RedisShim::Renew(const Server& server) {
  auto opened = Open(server);
  return opened.ok() ? std::any(*opened) : std::any();
}

std::string RedisShim::Address(const std::any& target) const {
  const auto found = Target::Of(target);
  return found.ok() ? found->Address() : std::string("client");
}

Result<void> RedisShim::UseMarksKey(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!marks_key_.empty() && marks_key_ != key) {
    return Error{ErrorCode::kConfiguration, "AP503",
                 "the marks of this store are in '" + marks_key_ + "' already; the key '" + key +
                     "' must be the same in every process and wrap"};
  }
  marks_key_ = key;
  return {};
}

std::string RedisShim::marks_key() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return marks_key_.empty() ? std::string(kDefaultMarksKey) : marks_key_;
}

std::shared_ptr<Marker> RedisShim::MarkerAt(const std::string& store, const Target& target) {
  const std::string key = marks_key();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Marker>& found = markers_[target.Address()];
  if (found == nullptr) found = Marker::Make(store, target, key);
  return found;
}

SessionReply<SessionPtr> RedisShim::SessionOf(Server& server) {
  if (auto* session = std::any_cast<SessionPtr>(&server.session)) {
    (*session)->set_timeout(server.AskTimeout());
    return *session;
  }
  auto opened = Open(server);
  if (opened.ok()) server.session = *opened;
  return opened;
}

}  // namespace antipode::redis
