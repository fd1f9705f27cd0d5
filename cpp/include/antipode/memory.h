/// \file
/// An in-process replicated store: a test double for any kind of store, and the smallest example of a shim.
///
/// It replicates a log from a primary to the other regions with a lag, and can freeze, heal, fail over with lost writes
/// and restart, as a real store does; in monkey mode there is no lag, and each read returns any version that it may.
/// Every wait goes through the same engine as for a real store.
#ifndef ANTIPODE_MEMORY_H_
#define ANTIPODE_MEMORY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/shim/shim.h"
#include "antipode/site.h"
#include "antipode/store.h"

namespace antipode ANTIPODE_EXPORT {

namespace memory {
class Log;
struct Node;
}  // namespace memory

/// What came of an operation of a memory client: what a real store's client says in its own words.
enum class MemoryOutcome {
  kDone,
  kReadOnly,     ///< The server is a replica.
  kUnreachable,  ///< The server refuses connections, or the answer of a write was lost.
  kWaited,       ///< The read waited for the scope's writes in vain: `error` says what a barrier says (BAR-50).
};

/// The answer to one operation.
struct [[nodiscard]] MemoryReply {
  MemoryOutcome outcome = MemoryOutcome::kDone;
  std::string message;
  /// What was read; nothing where there is no such object.
  std::optional<std::string> value;
  std::optional<Error> error;

  bool ok() const noexcept { return outcome == MemoryOutcome::kDone; }
};

/// A client of one server. What it writes joins the current scope's lineage.
class MemoryClient {
 public:
  MemoryReply Set(std::string_view key, std::string_view value, Site site = Site());
  /// Deletes a key: a write like others.
  MemoryReply Delete(std::string_view key, Site site = Site());
  /// Reads a value at this server. In a `Reading` its lineage is collected, with `auto_merge` transferred.
  MemoryReply Get(std::string_view key, Site site = Site());

 private:
  friend class MemoryStore;
  MemoryClient(std::shared_ptr<memory::Log> log, memory::Node& node, std::shared_ptr<Store> store,
               std::shared_ptr<Server> server);
  MemoryReply Write(std::string_view key, std::optional<std::string> value, const Site& site);

  std::shared_ptr<memory::Log> log_;
  memory::Node* node_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Server> server_;
};

/// A read at a replica that may return more than one version: the newest, or one that is up to `most` behind it.
struct StaleRead {
  std::string store;
  std::string region;
  std::string key;
  std::size_t most = 0;
};

/// Says how many versions behind the newest a read is: from 0, the newest, to `most`. Called under the store's lock,
/// one read at a time. Another answer ends the process with a message.
using StaleChoice = std::function<std::size_t(const StaleRead& read)>;

/// How a memory store is made.
struct MemoryOptions {
  std::string name;
  /// The first region's server is the primary.
  std::vector<std::string> regions = {"a", "b"};
  /// From the primary's write until another region has it.
  std::chrono::nanoseconds lag{};
  /// The same for single regions.
  std::map<std::string, std::chrono::nanoseconds> lags;
  /// Places in a log with epochs and marks; versions that compare, with tombstones; or marks that are equal or not.
  Versions versions = Versions::kPosition;
  /// There is no clock: each read at a replica returns any version that it may (spec MONKEY), chosen by the seed.
  bool monkey = false;
  std::uint64_t seed = 0;
  /// The same, chosen by this: drawn by a library for property-based tests, which shrinks it towards 0.
  StaleChoice choice = nullptr;

  bool is_monkey() const noexcept { return monkey || choice != nullptr; }
};

/// A replicated store in this process. A region that there is not, or another mistake in a test's words, ends the
/// process with a message.
class MemoryStore {
 public:
  explicit MemoryStore(MemoryOptions options);
  MemoryStore(std::string name, std::vector<std::string> regions, std::chrono::nanoseconds lag = {})
      : MemoryStore(
            MemoryOptions{std::move(name), std::move(regions), lag, {}, Versions::kPosition, false, 0, nullptr}) {}

  const std::string& name() const noexcept;

  /// A client of one region's server, recorded and waited for under the store's name in this process.
  MemoryClient Client(std::string_view region) { return Client(region, StoreOptions(name())); }
  MemoryClient Client(std::string_view region, StoreOptions options);
  /// The servers of these regions, for `StoreOptions::ReplicaTargets`: of a client that only writes elsewhere (BAR-22).
  Targets TargetsOf(const std::vector<std::string>& regions) const;
  /// This process waits for the servers of these regions, and never reads.
  void Register(const std::vector<std::string>& regions);
  /// Has another shim answer for this store: for tests of what catches a broken one.
  void SetShim(ShimType type) { shim_ = std::move(type); }

  // Faults

  /// From now on writes reach this region so much later.
  void SetLag(std::string_view region, std::chrono::nanoseconds lag);
  /// The link to this region carries nothing until `Heal`.
  void Freeze(std::string_view region);
  /// The link carries again, and what was held back arrives at once.
  void Heal(std::string_view region);
  /// This region's server becomes the primary, under a new epoch; the other servers follow it. The last `lose` writes
  /// of the old primary are lost.
  void Promote(std::string_view region, std::size_t lose = 0);
  /// This region's server follows another replica, or the primary, from now on.
  void Repoint(std::string_view region, std::string_view source);
  /// The server's process ends and starts again, with what it had.
  void Restart(std::string_view region);
  /// The server refuses connections until `Restart`.
  void Stop(std::string_view region);
  /// The next write takes effect, and its writer never hears of it.
  void LoseNextAnswer();
  /// The operator's word that the store holds an ended epoch up to a position: a mark (EPOCH-24).
  void Settle(std::string_view epoch, std::uint64_t counter = UINT64_MAX);

  // Without Antipode

  /// Writes at the primary as code that does not know Antipode.
  void Put(std::string_view key, std::string_view value);
  /// What a server has now: the truth that barriers are held to. Nothing where it is down, too.
  std::optional<std::string> Look(std::string_view region, std::string_view key) const;
  /// Names the server's process: another one after each start.
  std::string Instance(std::string_view region) const;

 private:
  std::shared_ptr<memory::Log> log_;
  ShimType shim_;
};

/// The shims of the memory store, one for each kind of version; in monkey mode they bring what is waited for.
ShimType MemoryShim(Versions versions, bool monkey = false);

}  // namespace antipode

#endif  // ANTIPODE_MEMORY_H_
