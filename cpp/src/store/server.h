// A server as the engine calls it, and how a store gets one.
#ifndef ANTIPODE_SRC_STORE_SERVER_H_
#define ANTIPODE_SRC_STORE_SERVER_H_

#include <any>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "antipode/shim/server.h"

namespace antipode {

struct PendingWait;

// Every server is one of these. Any thread may call everything.
class Server::Impl : public Server {
 public:
  // How often its proofs were dropped: what was asked for before may speak of other data (BAR-63). No lock.
  virtual std::uint64_t generation() const noexcept = 0;

  // Waits for a need; true where it was settled at once and was the last one of its group.
  virtual bool Park(PendingWait& need) noexcept = 0;

  // The barrier's deadline has passed, or it was cancelled.
  virtual void GiveUp(PendingWait& need) noexcept = 0;

  // The need is given up, and this is said of it where it was not settled.
  virtual void Refuse(PendingWait& need, const Visibility& answer) = 0;

  // Copies what is known of a need while others may change it.
  virtual void CopyTo(PendingWait& copy, const PendingWait& need) const = 0;

  // Whether a fresh proof covers this position, without a question: the watermark (BAR-33 to BAR-35).
  virtual bool Holds(const std::string& epoch, std::uint64_t counter) const = 0;

  // Names the proofs that cover this position, for `StillHolds`; nothing where none does.
  virtual std::optional<std::uint64_t> ProofOf(const std::string& epoch, std::uint64_t counter) const = 0;

  // Whether the proofs of that name hold, and were asked for within `ttl`; no lock, no I/O.
  virtual bool StillHolds(std::uint64_t proof, std::chrono::steady_clock::time_point now,
                          std::chrono::nanoseconds ttl) const noexcept = 0;

  // Where the server was last seen, for a person.
  virtual std::string Position() const = 0;

  // The words of the last failure while the server does not answer, else empty.
  virtual std::string Down() const = 0;

  // Nobody waits here any more: the thread ends now, and its channel with it.
  virtual void Retire() = 0;

  // Whether its thread runs (tests).
  virtual bool Asking() const = 0;

  // Needs that wait here now (tests).
  virtual std::size_t Waiting() const = 0;

  // Since when the least position of this epoch is wanted that was given up; nothing where no prober goes on (tests).
  virtual std::optional<std::chrono::steady_clock::time_point> ProbedSince(const std::string& epoch) const = 0;

  // Forks: nothing of this crosses one (SCOPE-13)
  virtual void BeforeFork() = 0;
  virtual void AfterForkInParent() = 0;
  virtual void AfterForkInChild() = 0;

 protected:
  Impl(Store& store, std::string address, std::any target) : Server(store, std::move(address), std::move(target)) {}
};

inline Server::Impl& Server::impl() noexcept { return static_cast<Impl&>(*this); }
inline const Server::Impl& Server::impl() const noexcept { return static_cast<const Impl&>(*this); }

// Return a new server of a store, which nobody asks yet. The engine, which asks it, defines this.
std::shared_ptr<Server> MakeServer(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target);

}  // namespace antipode

#endif  // ANTIPODE_SRC_STORE_SERVER_H_
