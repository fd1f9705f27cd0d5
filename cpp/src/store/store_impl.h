// A store from within: its servers, who names them, and the places of parked barriers.
#ifndef ANTIPODE_SRC_STORE_STORE_IMPL_H_
#define ANTIPODE_SRC_STORE_STORE_IMPL_H_

#include <any>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <typeindex>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/store.h"

namespace antipode ANTIPODE_EXPORT {

class Ages;
class WaitGroup;

// What a store holds; what it says stands at `Store`.
class Store::Impl {
 public:
  Impl(Store& owner, const ShimType& type, StoreOptions options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::string& name() const noexcept { return name_; }
  const std::string& kind() const noexcept { return kind_; }
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  Shim& shim() const noexcept { return *shim_; }
  std::shared_ptr<const StoreOptions> options() const;
  std::vector<std::string> replicas();
  Mode mode() const;
  std::chrono::nanoseconds timeout() const;
  bool records() const { return mode() != Mode::kOff; }
  bool hashes_keys() const;

  Result<void> AgreeOnEnvelopes(const std::optional<std::string>& keys);

  Result<WriteId> MakeWriteId(std::string_view key, Version version) const;

  // Servers

  std::shared_ptr<Server> UseServer(const StoreOptions& options, const std::any& target, std::string address = {});

  std::shared_ptr<Lead> NameServer(const StoreOptions& options, const std::any& target, std::string address);

  std::shared_ptr<Lead> Reach(const std::shared_ptr<Lead>& before, const StoreOptions& options, const std::any& target,
                              std::string address, int descriptor);

  std::vector<std::shared_ptr<Server>> Servers(bool own = false);

  std::vector<std::string> Gone(bool own = false);

  std::string Undiscovered(bool own = false) const;

  std::shared_ptr<Server> ServerAt(std::string_view address) const;

  // What the engine calls

  // Takes one of the places of parked barriers, for a thread or a task, and of its entries; false where all are taken
  // (BAR-39, BAR-60).
  bool TakePlace(std::int64_t limit, bool tasks, std::int64_t entries);
  // The barrier is parked no more.
  void GivePlaceBack(bool tasks, std::int64_t entries);
  // When its positions were first seen anywhere (BAR-57).
  Ages& ages() noexcept { return *ages_; }
  // Barriers that are parked now.
  std::int64_t parked() const noexcept { return parked_threads_.load() + parked_tasks_.load(); }
  // Grows when the set of servers changes.
  std::uint64_t generation() const noexcept { return generation_->load(std::memory_order_acquire); }
  using Generation = std::atomic<std::uint64_t>;
  // The same for who may outlive the store.
  std::shared_ptr<const Generation> shared_generation() const noexcept { return generation_; }
  // A group waits until a list has named servers that never did so, and has it asked for that (BAR-53).
  void AwaitNames(const std::shared_ptr<WaitGroup>& group, bool own);
  // Has lists and connections looked at anew where it is time; returns the generation so far (BAR-65).
  std::uint64_t LookAgain();
  // Whether a server is not, or not any more, one of those of a reach; as `Servers`.
  bool HasLost(const Server& server, bool own) const;
  // Whether what lists the servers is to be asked again, or its last answer stands no more (BAR-22, BAR-53).
  bool RefreshDue(std::chrono::steady_clock::time_point now) const noexcept;
  // Another wrap or registration under the same name.
  Result<void> Join(const ShimType& type, const StoreOptions& options);
  // From now on this alone names the region's servers (for tests of discovery).
  Result<void> ListBy(ListTargets list);
  // Its servers' threads end, with their channels; they begin again where somebody waits.
  void Retire();

  // Forks (SCOPE-13)
  void BeforeFork();
  void AfterForkInParent();
  void AfterForkInChild();

 private:
  using ServersByAddress = std::vector<std::shared_ptr<Server>>;  // in the order in which they came
  using TimePoint = std::chrono::steady_clock::time_point;

  // What lists servers, and those of its last answer that was not empty.
  struct Source {
    ListTargets list;
    ServersByAddress servers = {};
    std::optional<TimePoint> given_at = {};
    std::optional<TimePoint> told_at = {};  // when the last question was asked that came to anything

    bool IsCurrent(TimePoint now) const noexcept;  // BAR-67
    std::string words = "nobody has asked for them yet";  // the last fault
  };

  // A connection, and the server to which it leads.
  struct ReachedServer {
    std::weak_ptr<Lead> lead;
    std::shared_ptr<Server> server;
    bool is_region;  // readers of this region may use it
    bool is_named;   // by the wrap of this connection, which still leads there
  };

  bool HasList(const StoreOptions& options) const;
  std::shared_ptr<Lead> Follow(const StoreOptions& options, const std::any& target, std::string address,
                               std::optional<int> descriptor);
  void Settle();
  void LookAtLeads();
  std::shared_ptr<Server> Add(ServersByAddress& group, const std::any& target, std::string address);
  std::shared_ptr<Server> Known(const std::any& target, std::string address);
  Result<void> ListReplicas(const StoreOptions& options);
  ServersByAddress Listed() const;
  ServersByAddress Judged(bool own) const;
  Result<void> Refresh();
  void Take(Source& source, const Targets& targets, TimePoint asked_at);
  void RefreshLater();
  void BeginRefresh() noexcept;
  void RefreshNow() noexcept;
  void MissNames() noexcept;
  bool TellNames();
  std::vector<std::shared_ptr<Server>> EveryServer() const;

  Store& owner_;
  const std::string name_;
  const std::string kind_;
  const std::type_index type_;
  const std::shared_ptr<Shim> shim_;
  const Capabilities capabilities_;
  std::atomic<std::int64_t> parked_threads_{0};
  std::atomic<std::int64_t> parked_tasks_{0};
  std::atomic<std::int64_t> parked_entries_{0};
  const std::shared_ptr<Generation> generation_ = std::make_shared<Generation>(0);
  std::atomic<std::int64_t> refreshed_at_{0};
  std::atomic<std::int64_t> known_until_{0};  // until then every last answer stands
  std::atomic<bool> looks_{false};  // at what may change by itself: lists, and connections
  std::atomic<bool> refreshing_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<const StoreOptions> options_;
  ServersByAddress own_;
  ServersByAddress unlisted_;  // those of them whose wraps name no replicas
  std::vector<ReachedServer> reached_;
  ServersByAddress listed_;
  ServersByAddress former_;  // no longer listed; their threads end by themselves
  std::vector<std::shared_ptr<Source>> sources_;
  std::map<std::string, TimePoint> gone_;  // when discovery took it away
  std::optional<std::optional<std::string>> envelopes_;  // which keys hold envelopes, once a wrap has said it
  std::unique_ptr<std::thread> refresher_;
  std::vector<std::weak_ptr<WaitGroup>> await_names_;
  const std::unique_ptr<Ages> ages_;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_STORE_STORE_IMPL_H_
