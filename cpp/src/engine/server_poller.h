/// \file
/// A server as the engine asks it: what it has proved, and who waits for it (spec BAR, EPOCH).
#ifndef ANTIPODE_ENGINE_SERVER_POLLER_H_
#define ANTIPODE_ENGINE_SERVER_POLLER_H_

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "antipode/shim/server.h"
#include "engine/asker.h"
#include "engine/server_state.h"
#include "store/server.h"

namespace antipode {

/// The only kind of server that there is.
///
/// One thread asks it, however many barriers wait (single flight), and only while somebody waits and ten seconds
/// longer. It is woken by the server's push where the store has one, by a new need, or by its poll timer.
class ServerPoller final : public Server::Impl {
 public:
  ServerPoller(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target);
  ~ServerPoller() override;
  ServerPoller(const ServerPoller&) = delete;
  ServerPoller& operator=(const ServerPoller&) = delete;

  std::chrono::nanoseconds AskTimeout() const override;
  void Applied(const std::string& instance, const std::string& epoch, const Ends& positions) override;
  void BeginQuestion() override;
  void Reset() override;
  bool Awaited() const override;
  std::optional<std::uint64_t> AppliedIn(const std::string& epoch) const override;
  bool Interrupted() const noexcept override;

  std::uint64_t generation() const noexcept override;
  bool Park(PendingWait& need) noexcept override;
  void GiveUp(PendingWait& need) noexcept override;
  void Refuse(PendingWait& need, const Visibility& answer) override;
  void CopyTo(PendingWait& copy, const PendingWait& need) const override;
  bool Holds(const std::string& epoch, std::uint64_t counter) const override;
  std::optional<std::uint64_t> ProofOf(const std::string& epoch, std::uint64_t counter) const override;
  bool StillHolds(std::uint64_t proof, TimePoint now, std::chrono::nanoseconds ttl) const noexcept override;
  std::string Position() const override;
  std::string Down() const override;
  void Retire() override;
  bool Asking() const override;
  std::size_t Waiting() const override;
  std::optional<TimePoint> ProbedSince(const std::string& epoch) const override;

  void BeforeFork() override;
  void AfterForkInParent() override;
  void AfterForkInChild() override;

 private:
  mutable ServerState state_;
  Asker asker_;
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_SERVER_POLLER_H_
