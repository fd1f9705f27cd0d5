/// \file
/// One server of a store: what it has proved, and who waits for it (spec BAR, EPOCH).
#ifndef ANTIPODE_SHIM_SERVER_H_
#define ANTIPODE_SHIM_SERVER_H_

#include <any>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "antipode/shim/epochs.h"
#include "antipode/shim/shim.h"

namespace antipode {

struct Need;

/// A server of a store, by its address: a handle of what the engine asks.
class Server {
 public:
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  Store& store() const noexcept { return store_; }
  const std::string& address() const noexcept { return address_; }
  /// The shim's way to reach it: what was given as client or URL.
  const std::any& target() const noexcept { return target_; }
  /// The shim's own state, for the thread that asks alone.
  std::any session;

  // What a shim calls

  /// How long one question may take; then the shim says that the server is unreachable.
  virtual std::chrono::nanoseconds AskTimeout() const = 0;

  /// What one reply proved: this instance, in this epoch now, has applied each epoch up to the counter.
  ///
  /// Proofs of another instance or epoch are dropped, and all of them where the server went back (BAR-33, EPOCH-15).
  virtual void Applied(const std::string& instance, const std::string& epoch, const Ends& positions) = 0;

  /// A question begins: the ages of what it proves count from now (BAR-34). The engine says so before each question; a
  /// shim whose `Wait` asks several times says it for each.
  virtual void BeginQuestion() = 0;

  /// Drops every proof: the connection or the server's data may be another one (a push of a full resync). Any thread. A
  /// question that is on its way is asked anew: its answer, verdicts and all, may speak of the data before (BAR-33).
  virtual void Reset() = 0;

  /// Whether a barrier, or a read, waits for a write here now: not one that only looks or records, and no prober. Any
  /// thread.
  virtual bool Awaited() const = 0;

  /// How far it was last seen in an epoch; nothing where it has not said. Any thread.
  virtual std::optional<std::uint64_t> AppliedIn(const std::string& epoch) const = 0;

  /// Whether somebody new waits: a blocking `Wait` answers now, and is called anew with what is wanted then. Any
  /// thread.
  virtual bool Interrupted() const noexcept = 0;

  // What the engine calls; everything from any thread

  /// How often its proofs were dropped: what was asked for before may speak of other data (BAR-63). No lock.
  virtual std::uint64_t generation() const noexcept = 0;

  /// Waits for a need; true where it was settled at once and was the last one of its group.
  virtual bool Park(Need& need) noexcept = 0;

  /// The barrier's deadline has passed, or it was cancelled.
  virtual void GiveUp(Need& need) noexcept = 0;

  /// The need is given up, and this is said of it where it was not settled.
  virtual void Refuse(Need& need, const Visibility& answer) = 0;

  /// Copies what is known of a need while others may change it.
  virtual void CopyTo(Need& copy, const Need& need) const = 0;

  /// Whether a fresh proof covers this position, without a question: the watermark (BAR-33 to BAR-35).
  virtual bool Holds(const std::string& epoch, std::uint64_t counter) const = 0;

  /// Names the proofs that cover this position, for `StillHolds`; nothing where none does.
  virtual std::optional<std::uint64_t> ProofOf(const std::string& epoch, std::uint64_t counter) const = 0;

  /// Whether the proofs of that name hold, and were asked for within `ttl`; no lock, no I/O.
  virtual bool StillHolds(std::uint64_t proof, std::chrono::steady_clock::time_point now,
                          std::chrono::nanoseconds ttl) const noexcept = 0;

  /// Where the server was last seen, for a person.
  virtual std::string Position() const = 0;

  /// The words of the last failure while the server does not answer, else empty.
  virtual std::string Down() const = 0;

  /// Nobody waits here any more: the thread ends now, and its channel with it.
  virtual void Retire() = 0;

  /// Whether its thread runs (tests).
  virtual bool Asking() const = 0;

  /// Needs that wait here now (tests).
  virtual std::size_t Waiting() const = 0;

  /// Since when the least position of this epoch is wanted that was given up; nothing where no prober goes on (tests).
  virtual std::optional<std::chrono::steady_clock::time_point> ProbedSince(const std::string& epoch) const = 0;

  // Forks: nothing of this crosses one (SCOPE-13)
  virtual void BeforeFork() = 0;
  virtual void AfterForkInParent() = 0;
  virtual void AfterForkInChild() = 0;

 protected:
  Server(Store& store, std::string address, std::any target);

 private:
  Store& store_;
  const std::string address_;
  const std::any target_;
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_SERVER_H_
