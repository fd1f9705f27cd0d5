/// \file
/// One server of a store: what it has proved, and who waits for it (spec BAR, EPOCH).
#ifndef ANTIPODE_SHIM_SERVER_H_
#define ANTIPODE_SHIM_SERVER_H_

#include <any>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "antipode/export.h"
#include "antipode/shim/epochs.h"
#include "antipode/shim/shim.h"

namespace antipode ANTIPODE_EXPORT {

/// A server of a store, by its address: a handle of what the engine asks. The engine alone makes one.
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

  /// What the engine asks of it, and no shim.
  class Impl;
  Impl& impl() noexcept;
  const Impl& impl() const noexcept;

 private:
  Server(Store& store, std::string address, std::any target);

  Store& store_;
  const std::string address_;
  const std::any target_;
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_SERVER_H_
