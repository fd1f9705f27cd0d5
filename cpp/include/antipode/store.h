/// \file
/// The datastores that this process has registered (spec SHIM).
#ifndef ANTIPODE_STORE_H_
#define ANTIPODE_STORE_H_

#include <any>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/settings.h"
#include "antipode/shim/lead.h"
#include "antipode/shim/server.h"
#include "antipode/shim/shim.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// Servers as a shim knows them: URLs (`std::string`) or clients.
using Targets = std::vector<std::any>;

/// Lists the servers anew; asked again every 5 s, by a thread of its own.
using ListTargets = std::function<Result<Targets>()>;

/// What becomes of a store whose topology, rights or settings allow no proof (SHIM-3).
enum class OnUnfit { kRaise, kUnproven };

/// What `Wrap` and `Register` take, the same words for every store; what is not said stays as it was, or at its
/// default.
struct StoreOptions {
  // NOLINTNEXTLINE(google-explicit-constructor): a name alone is what most wraps say.
  StoreOptions(std::string store) : name(std::move(store)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  StoreOptions(const char* store) : name(store) {}

  std::string name;                                ///< The store's logical name, the same in every service.
  /// The servers that readers of this region may use. Without it, and without `list_replicas`, a wrap adds its client's
  /// own server to those that other wraps of the store name (BAR-22): a process that only writes at a distant primary
  /// names them there, too.
  std::optional<Targets> replicas;
  ListTargets list_replicas;                       ///< Or what lists them.
  std::optional<bool> wait_on_read;                ///< Each read waits first for the scope's writes (BAR-50).
  std::optional<std::chrono::nanoseconds> timeout; ///< A barrier's deadline on this store.
  std::optional<std::string> rest;                 ///< Where lineages rest beside values: `none`, `field`, `envelope`.
  std::optional<std::string> envelope_keys;        ///< Which keys hold envelopes (SHIM-37).
  std::optional<bool> hash_keys;                   ///< Object keys travel as hashes (SHIM-21).
  std::optional<bool> lineage_in;                  ///< Whether lineages at rest are believed; true.
  std::optional<bool> lineage_out;                 ///< Whether lineages are written beside values; true.
  std::optional<OnUnfit> on_unfit;
  std::optional<::antipode::OnReplicaOut> on_replica_out;
  std::optional<Mode> mode;                        ///< Enforce, dry-run or off for this store; the most careful wins.

  // These change this value and return it.
  StoreOptions& Replicas(const std::vector<std::string>& urls) {
    return Set(replicas, Targets(urls.begin(), urls.end()));
  }
  StoreOptions& ReplicaTargets(Targets targets) { return Set(replicas, std::move(targets)); }
  StoreOptions& ReplicasFrom(ListTargets list) {
    list_replicas = std::move(list);
    return *this;
  }
  StoreOptions& WaitOnRead(bool value) { return Set(wait_on_read, value); }
  StoreOptions& Timeout(std::chrono::nanoseconds value) { return Set(timeout, value); }
  StoreOptions& RestIn(std::string value) { return Set(rest, std::move(value)); }
  StoreOptions& EnvelopeKeys(std::string value) { return Set(envelope_keys, std::move(value)); }
  StoreOptions& HashKeys(bool value) { return Set(hash_keys, value); }
  StoreOptions& LineageIn(bool value) { return Set(lineage_in, value); }
  StoreOptions& LineageOut(bool value) { return Set(lineage_out, value); }
  StoreOptions& WhenUnfit(OnUnfit value) { return Set(on_unfit, value); }
  StoreOptions& WhenReplicaOut(::antipode::OnReplicaOut value) { return Set(on_replica_out, value); }
  StoreOptions& InMode(Mode value) { return Set(mode, value); }

  /// The options of several wraps of one store: the later says what it says, the rest stays.
  StoreOptions JoinedWith(const StoreOptions& later) const;

 private:
  template <class T, class U>
  StoreOptions& Set(std::optional<T>& member, U&& value) {
    member = std::forward<U>(value);
    return *this;
  }
};

/// A registered datastore: its logical name, its kind, and the servers that its readers here may use.
class Store {
 public:
  Store(const ShimType& type, StoreOptions options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::string& name() const noexcept;
  /// The kind of store: `redis`, `memory`…
  const std::string& kind() const noexcept;
  /// What its shim can do.
  const Capabilities& capabilities() const noexcept;
  Shim& shim() const noexcept;
  std::shared_ptr<const StoreOptions> options() const;
  /// The addresses of the servers that a pass with reach `region` speaks of.
  std::vector<std::string> replicas();
  /// Enforce, dry-run or off for this store: the most careful of what was said (BAR-49).
  Mode mode() const;
  /// The deadline of a barrier on this store alone where the call has none.
  std::chrono::nanoseconds timeout() const;
  /// Whether writes are recorded at all (not in mode off).
  bool records() const { return mode() != Mode::kOff; }
  /// Whether its object keys travel as hashes (SHIM-21).
  bool hashes_keys() const;

  /// A wrap says which keys hold envelopes (nothing: no key does); every wrap of the store has to say the same
  /// (SHIM-37).
  ///
  /// kConfiguration where an earlier one said otherwise: one would misread the other's values.
  Result<void> AgreeOnEnvelopes(const std::optional<std::string>& keys);

  /// The identifier of one object's or position's version in this store; the key hashed where the store does so.
  Result<WriteId> MakeWriteId(std::string_view key, Version version) const;

  // Servers

  /// A wrapped client's own server joins the store; and the region, where that wrap's options name no replicas and no
  /// setting does (BAR-22).
  std::shared_ptr<Server> UseServer(const StoreOptions& options, const std::any& target, std::string address = {});

  /// The same of the server that a connection has when it is wrapped. It stays where the connection is closed or lost,
  /// because the application opens others without saying so; and leaves where this one is made anew elsewhere (BAR-62).
  std::shared_ptr<Lead> NameServer(const StoreOptions& options, const std::any& target, std::string address);

  /// A wrapped connection leads to this server now, before it is used: it joins, as long as one leads there (BAR-52,
  /// BAR-62).
  ///
  /// Returns the lead to keep in place of `before`, which may be that one. `descriptor` is the connection's socket,
  /// which a thread of Antipode's own looks at every 5 s while barriers come.
  std::shared_ptr<Lead> Reach(const std::shared_ptr<Lead>& before, const StoreOptions& options, const std::any& target,
                              std::string address, int descriptor);

  /// The servers of reach `region`; with `own` those of wrapped clients (reach `replica`).
  std::vector<std::shared_ptr<Server>> Servers(bool own = false);

  /// The addresses that discovery took away lately and that are not judged: an open connection may still lead there
  /// (BAR-54).
  std::vector<std::string> Gone(bool own = false);

  /// Why nobody knows the servers of this reach, whom a list function has to name; empty where somebody does (BAR-53).
  std::string Undiscovered(bool own = false) const;

  /// The server with this address, or null.
  std::shared_ptr<Server> ServerAt(std::string_view address) const;

  /// What the library itself asks of it, and no shim.
  class Impl;
  Impl& impl() const noexcept { return *impl_; }

 private:
  const std::unique_ptr<Impl> impl_;
};

/// Registers a store, or joins the one of that name: what every shim's `Wrap` and `Register` do. Fails (kConfiguration)
/// for a name that the wire cannot carry, or one that another kind of store has.
Result<std::shared_ptr<Store>> JoinStore(const ShimType& type, const StoreOptions& options);

/// The same with a kind that was made known by `Register<T>(kind)`.
Result<std::shared_ptr<Store>> JoinStore(std::string_view kind, const StoreOptions& options);

/// The stores that this process has registered, in the order in which they came.
std::vector<std::shared_ptr<Store>> Stores();

/// The store of this name; kUnknownStore with the nearest name.
Result<std::shared_ptr<Store>> FindStore(std::string_view name);

}  // namespace antipode

#endif  // ANTIPODE_STORE_H_
