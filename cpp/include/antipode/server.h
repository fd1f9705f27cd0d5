/// \file
/// One server of a store: what it has proved, and who waits for it (spec BAR, EPOCH).
#ifndef ANTIPODE_SERVER_H_
#define ANTIPODE_SERVER_H_

#include <any>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "antipode/epochs.h"
#include "antipode/shim.h"

namespace antipode {

struct Need;

/// A server of a store, by its address.
///
/// One thread asks it, however many barriers wait (single flight), and only while somebody waits and ten seconds
/// longer. It is woken by the server's push where the store has one, by a new need, or by its poll timer.
class Server {
 public:
  class Inside;

  Server(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Store& store() const noexcept;
  const std::string& address() const noexcept;
  /// The shim's way to reach it: what was given as client or URL.
  const std::any& target() const noexcept;
  /// The shim's own state, for the thread that asks alone.
  std::any session;

  // What a shim calls

  /// How long one question may take; then the shim says that the server is unreachable.
  std::chrono::nanoseconds AskTimeout() const;

  /// What one reply proved: this instance, in this epoch now, has applied each epoch up to the counter.
  ///
  /// Proofs of another instance or epoch are dropped, and all of them where the server went back (BAR-33, EPOCH-15).
  void Applied(const std::string& instance, const std::string& epoch, const Ends& positions);

  /// A question begins: the ages of what it proves count from now (BAR-34). The engine says so before each question; a
  /// shim whose `Wait` asks several times says it for each.
  void BeginQuestion();

  /// Drops every proof: the connection or the server's data may be another one (a push of a full resync). Any thread. A
  /// question that is on its way is asked anew: its answer, verdicts and all, may speak of the data before (BAR-33).
  void Reset();

  /// Whether a barrier, or a read, waits for a write here now: not one that only looks or records, and no prober. Any
  /// thread.
  bool Awaited() const;

  /// How far it was last seen in an epoch; nothing where it has not said. Any thread.
  std::optional<std::uint64_t> AppliedIn(const std::string& epoch) const;

  /// Whether somebody new waits: a blocking `Wait` answers now, and is called anew with what is wanted then. Any
  /// thread.
  bool Interrupted() const noexcept;

  // What the engine calls; everything from any thread

  /// How often its proofs were dropped: what was asked for before may speak of other data (BAR-63). No lock.
  std::uint64_t generation() const noexcept;

  /// Waits for a need; true where it was settled at once and was the last one of its group.
  bool Park(Need& need) noexcept;

  /// The barrier's deadline has passed, or it was cancelled.
  void GiveUp(Need& need) noexcept;

  /// The need is given up, and this is said of it where it was not settled.
  void Refuse(Need& need, const Visibility& answer);

  /// Copies what is known of a need while others may change it.
  void CopyTo(Need& copy, const Need& need) const;

  /// Whether a fresh proof covers this position, without a question: the watermark (BAR-33 to BAR-35).
  bool Holds(const std::string& epoch, std::uint64_t counter) const;

  /// Names the proofs that cover this position, for `StillHolds`; nothing where none does.
  std::optional<std::uint64_t> ProofOf(const std::string& epoch, std::uint64_t counter) const;

  /// Whether the proofs of that name hold, and were asked for within `ttl`; no lock, no I/O.
  bool StillHolds(std::uint64_t proof, std::chrono::steady_clock::time_point now,
                  std::chrono::nanoseconds ttl) const noexcept;

  /// Where the server was last seen, for a person.
  std::string Position() const;

  /// The words of the last failure while the server does not answer, else empty.
  std::string Down() const;

  /// Nobody waits here any more: the thread ends now, and its channel with it.
  void Retire();

  /// Whether its thread runs (tests).
  bool Asking() const;

  /// Needs that wait here now (tests).
  std::size_t Waiting() const;

  /// Since when the least position of this epoch is wanted that was given up; nothing where no prober goes on (tests).
  std::optional<std::chrono::steady_clock::time_point> ProbedSince(const std::string& epoch) const;

  // Forks: nothing of this crosses one (SCOPE-13)
  void BeforeFork();
  void AfterForkInParent();
  void AfterForkInChild();

 private:
  std::unique_ptr<Inside> inside_;
};

}  // namespace antipode

#endif  // ANTIPODE_SERVER_H_
