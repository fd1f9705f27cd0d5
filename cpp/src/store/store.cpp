#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "antipode/wire.h"
#include "base/in_force.h"
#include "base/time.h"
#include "store/ages.h"
#include "store/server.h"
#include "store/server_list.h"
#include "store/store_impl.h"

namespace antipode {
namespace {

constexpr std::int64_t kMostEntries = 100'000;  // parked at once (BAR-60)

template <class T>
void Take(std::optional<T>& member, const std::optional<T>& later) {
  if (later) member = later;
}

}  // namespace

StoreOptions StoreOptions::JoinedWith(const StoreOptions& later) const {
  StoreOptions joined = *this;
  Take(joined.wait_on_read, later.wait_on_read);
  Take(joined.timeout, later.timeout);
  Take(joined.rest, later.rest);
  Take(joined.envelope_keys, later.envelope_keys);
  Take(joined.hash_keys, later.hash_keys);
  Take(joined.lineage_in, later.lineage_in);
  Take(joined.lineage_out, later.lineage_out);
  Take(joined.on_unfit, later.on_unfit);
  Take(joined.on_replica_out, later.on_replica_out);
  Take(joined.mode, later.mode);
  return joined;
}

Store::Impl::Impl(Store& owner, const ShimType& type, StoreOptions options)
    : owner_(owner),
      name_(options.name),
      kind_(type.kind),
      type_(type.type),
      shim_(type.make()),
      capabilities_(shim_->capabilities()),
      options_(std::make_shared<const StoreOptions>(std::move(options))),
      ages_(std::make_unique<Ages>()) {}

Store::Impl::~Impl() {
  Retire();  // first: the threads that ask have the lists asked for, too
  if (refresher_) refresher_->join();
}

std::shared_ptr<const StoreOptions> Store::Impl::options() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return options_;
}

std::vector<std::string> Store::Impl::replicas() {
  std::vector<std::string> addresses;
  for (const auto& server : Servers()) addresses.push_back(server->address());
  return addresses;
}

Mode Store::Impl::mode() const { return ModeOf(name_, options()->mode); }

Duration Store::Impl::timeout() const { return TimeoutOf(name_, options()->timeout); }

bool Store::Impl::hashes_keys() const { return options()->hash_keys.value_or(InForce()->hash_keys); }

Result<WriteId> Store::Impl::MakeWriteId(std::string_view key, Version version) const {
  std::string octets = !key.empty() && hashes_keys() ? wire::HashedKey(key) : std::string(key);
  return WriteId::Make(name_, std::move(octets), std::move(version));
}

Result<void> Store::Impl::AgreeOnEnvelopes(const std::optional<std::string>& keys) {
  const auto quoted = [](const std::optional<std::string>& each) {
    return each ? "\"" + *each + "\"" : std::string("none");
  };
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!envelopes_) envelopes_ = keys;
  if (*envelopes_ == keys) return {};
  return Error{ErrorCode::kConfiguration, "AP503",
               name_ + " was wrapped with EnvelopeKeys " + quoted(*envelopes_) + " before, and now with " +
                   quoted(keys) +
                   ": one would misread the other's values. Give every wrap of this store, in every process, the same "
                   "EnvelopeKeys"};
}

// Servers

Result<void> Store::Impl::Join(const ShimType& type, const StoreOptions& options) {
  if (type_ != type.type) {
    return Error{ErrorCode::kConfiguration, "AP503",
                 "store \"" + name_ + "\" is registered as " + kind_ + " already; it cannot be " + type.kind +
                     ", too. Give one of them another name."};
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    options_ = std::make_shared<const StoreOptions>(options_->JoinedWith(options));
  }
  return ListReplicas(options);
}

Result<void> Store::Impl::ListReplicas(const StoreOptions& options) {
  if (options.list_replicas) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sources_.push_back(std::make_shared<Source>(Source{options.list_replicas}));
      known_until_.store(0);
    }
    looks_.store(true);
    return Refresh();
  }
  Targets targets;
  if (options.replicas) {
    targets = *options.replicas;
  } else {
    for (const std::string& address : SettingsOfStore(name_).replicas) targets.emplace_back(address);
  }
  for (const std::any& target : targets) Add(listed_, target, shim_->Address(target));
  return {};
}

Result<void> Store::Impl::ListBy(ListTargets list) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& server : Listed()) {
      if (!Find(own_, server->address())) {
        former_.push_back(std::move(server));  // its thread may not be the last to hold it
      }
    }
    listed_.clear();
    unlisted_.clear();
    for (ReachedServer& each : reached_) each.is_region = false;
    sources_.clear();
  }
  StoreOptions options(name_);
  return ListReplicas(options.ReplicasFrom(std::move(list)));
}

std::shared_ptr<Server> Store::Impl::UseServer(const StoreOptions& options, const std::any& target,
                                               std::string address) {
  if (address.empty()) address = shim_->Address(target);
  std::shared_ptr<Server> server = Add(own_, target, address);
  if (!HasList(options)) Add(unlisted_, target, std::move(address));
  return server;
}

bool Store::Impl::HasList(const StoreOptions& options) const {
  return options.replicas || options.list_replicas || !SettingsOfStore(name_).replicas.empty();
}

std::shared_ptr<Lead> Store::Impl::NameServer(const StoreOptions& options, const std::any& target,
                                              std::string address) {
  return Follow(options, target, std::move(address), std::nullopt);
}

std::shared_ptr<Lead> Store::Impl::Reach(const std::shared_ptr<Lead>& before, const StoreOptions& options,
                                   const std::any& target, std::string address, int descriptor) {
  if (before && before->server()->address() == address && before->Counts(descriptor)) return before;
  looks_.store(true);
  auto lead = Follow(options, target, std::move(address), descriptor);
  if (before) {
    before->End();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (ReachedServer& each : reached_) each.is_named = each.is_named && each.lead.lock() != before;
  }
  return lead;
}

std::shared_ptr<Lead> Store::Impl::Follow(const StoreOptions& options, const std::any& target, std::string address,
                                    std::optional<int> descriptor) {
  const bool is_region = !HasList(options);
  const std::lock_guard<std::mutex> lock(mutex_);
  Settle();
  const auto before = std::pair(Judged(true), Judged(false));
  const auto lead = std::make_shared<Lead>(Known(target, std::move(address)), descriptor);
  reached_.push_back({lead, lead->server(), is_region, !descriptor});
  if (std::pair(Judged(true), Judged(false)) != before) generation_->fetch_add(1, std::memory_order_acq_rel);
  return lead;
}

// What a wrap has named whose connection is gone stays, and one of two that are gone tells of the other; the lock is
// held.
void Store::Impl::Settle() {
  std::vector<ReachedServer> alive;
  for (ReachedServer& each : reached_) {
    const std::string& address = each.server->address();
    const auto is_same = [&](const ReachedServer& other) {
      return other.server == each.server && other.is_region == each.is_region && !other.is_named &&
             other.lead.expired();
    };
    if (!each.lead.expired() || (!each.is_named && std::none_of(alive.begin(), alive.end(), is_same))) {
      alive.push_back(each);
    } else if (each.is_named) {
      if (!Find(own_, address)) own_.push_back(each.server);
      if (each.is_region && !Find(unlisted_, address)) unlisted_.push_back(each.server);
    }
  }
  reached_ = std::move(alive);
}

// Drops the connections that lead nowhere any more, and the servers to which none leads (BAR-62).
void Store::Impl::LookAtLeads() {
  std::vector<std::shared_ptr<Lead>> leads;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const ReachedServer& each : reached_) {
      if (auto lead = each.is_named ? nullptr : each.lead.lock()) leads.push_back(std::move(lead));
    }
  }
  for (const auto& lead : leads) {
    if (!lead->IsOpen()) lead->End();
  }
  const auto is_lost = [](const ReachedServer& each) {
    const auto lead = each.lead.lock();
    return lead != nullptr ? lead->is_over() : !each.is_named;
  };
  const TimePoint now = Clock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  Settle();
  const bool is_last = own_.empty() && unlisted_.empty() && Listed().empty();
  if (is_last && std::all_of(reached_.begin(), reached_.end(), is_lost)) return;  // nobody names others
  std::vector<ReachedServer> stays;
  std::vector<ReachedServer> leaves;
  for (const ReachedServer& each : reached_) (is_lost(each) ? leaves : stays).push_back(each);
  for (const ReachedServer& each : leaves) former_.push_back(each.server);  // its thread may not be the last to hold it
  reached_.swap(stays);
  try {
    const ServersByAddress own = Judged(true);
    const ServersByAddress region = Judged(false);
    for (const ReachedServer& each : leaves) {
      const std::string& address = each.server->address();
      if (!Find(own, address) || (each.is_region && !Find(region, address))) gone_[address] = now;
    }
  } catch (const std::bad_alloc&) {  // who leaves is named: they leave the next time (BAR-61)
    reached_.swap(stays);
    throw;
  }
  if (!leaves.empty()) generation_->fetch_add(1, std::memory_order_acq_rel);
}

std::shared_ptr<Server> Store::Impl::Add(ServersByAddress& group, const std::any& target, std::string address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (auto there = Find(group, address)) return there;
  group.push_back(Known(target, std::move(address)));
  generation_->fetch_add(1, std::memory_order_acq_rel);
  return group.back();
}

// The one of this address, made where there is none; the lock is held.
std::shared_ptr<Server> Store::Impl::Known(const std::any& target, std::string address) {
  std::shared_ptr<Server> server = Find(EveryServer(), address);
  if (!server) server = MakeServer(owner_, shim_, std::move(address), target);
  former_.erase(std::remove(former_.begin(), former_.end(), server), former_.end());
  return server;
}

// Those that a list or a function names; the lock is held.
std::vector<std::shared_ptr<Server>> Store::Impl::Listed() const {
  ServersByAddress listed = listed_;
  for (const auto& source : sources_) {
    for (const auto& server : source->servers) {
      if (!Find(listed, server->address())) listed.push_back(server);
    }
  }
  return listed;
}

std::vector<std::shared_ptr<Server>> Store::Impl::Servers(bool own) {
  if (RefreshDue(Clock::now())) RefreshLater();
  const std::lock_guard<std::mutex> lock(mutex_);
  return Judged(own);
}

// The servers of a reach: those that a list names, and of each wrap without one its own (BAR-22); the lock is held.
std::vector<std::shared_ptr<Server>> Store::Impl::Judged(bool own) const {
  ServersByAddress alone = own ? own_ : unlisted_;  // that no list names
  for (const ReachedServer& each : reached_) {
    if ((own || each.is_region) && !Find(alone, each.server->address())) alone.push_back(each.server);
  }
  if (own) return alone.empty() ? Judged(false) : alone;
  const ServersByAddress listed = Listed();
  ServersByAddress judged = listed;
  for (const auto& server : alone) {
    const bool is_spoken_for = std::any_of(listed.begin(), listed.end(), [&](const auto& each) {
      return each == server || shim_->SpeaksFor(each->target(), server->target());
    });
    if (!is_spoken_for) judged.push_back(server);
  }
  return judged;
}

std::vector<std::string> Store::Impl::Gone(bool own) {
  const TimePoint now = Clock::now();
  const Duration stays = InForce()->left_server;
  std::vector<std::string> addresses;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (gone_.empty()) return addresses;
  const ServersByAddress judged = Judged(own);
  for (auto each = gone_.begin(); each != gone_.end();) {
    const bool is_over = now - each->second >= stays;
    if (!is_over && !Find(judged, each->first)) addresses.push_back(each->first);
    each = is_over ? gone_.erase(each) : std::next(each);
  }
  return addresses;
}

std::shared_ptr<Server> Store::Impl::ServerAt(std::string_view address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const ReachedServer& each : reached_) {
    if (each.server->address() == address) return each.server;
  }
  const auto own = Find(own_, address);
  return own ? own : Find(Listed(), address);
}

std::vector<std::shared_ptr<Server>> Store::Impl::EveryServer() const {
  ServersByAddress every = own_;
  ServersByAddress reached;
  for (const ReachedServer& each : reached_) reached.push_back(each.server);
  for (const auto& group : {reached, Listed(), former_}) {
    for (const auto& server : group) {
      if (std::find(every.begin(), every.end(), server) == every.end()) every.push_back(server);
    }
  }
  return every;
}

void Store::Impl::Retire() {
  ServersByAddress every;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    every = EveryServer();
  }
  for (const auto& server : every) server->impl().Retire();
}

// Places

bool Store::Impl::TakePlace(std::int64_t limit, bool tasks, std::int64_t entries) {
  std::atomic<std::int64_t>& parked = tasks ? parked_tasks_ : parked_threads_;
  const bool is_free = parked.fetch_add(1, std::memory_order_acq_rel) < limit;
  if (parked_entries_.fetch_add(entries, std::memory_order_acq_rel) + entries <= kMostEntries && is_free) return true;
  GivePlaceBack(tasks, entries);
  return false;
}

void Store::Impl::GivePlaceBack(bool tasks, std::int64_t entries) {
  parked_entries_.fetch_sub(entries, std::memory_order_acq_rel);
  (tasks ? parked_tasks_ : parked_threads_).fetch_sub(1, std::memory_order_acq_rel);
}

// Forks

void Store::Impl::BeforeFork() {
  mutex_.lock();
  for (const auto& server : EveryServer()) server->impl().BeforeFork();
}

void Store::Impl::AfterForkInParent() {
  for (const auto& server : EveryServer()) server->impl().AfterForkInParent();
  mutex_.unlock();
}

void Store::Impl::AfterForkInChild() {
  static_cast<void>(refresher_.release());  // the parent's
  await_names_.clear();
  refreshing_.store(false);
  parked_threads_.store(0);
  parked_tasks_.store(0);
  parked_entries_.store(0);
  for (const auto& server : EveryServer()) server->impl().AfterForkInChild();
  mutex_.unlock();
}

// The handle

Store::Store(const ShimType& type, StoreOptions options)
    : impl_(std::make_unique<Impl>(*this, type, std::move(options))) {}

Store::~Store() = default;

const std::string& Store::name() const noexcept { return impl_->name(); }

const std::string& Store::kind() const noexcept { return impl_->kind(); }

const Capabilities& Store::capabilities() const noexcept { return impl_->capabilities(); }

Shim& Store::shim() const noexcept { return impl_->shim(); }

std::shared_ptr<const StoreOptions> Store::options() const { return impl_->options(); }

std::vector<std::string> Store::replicas() { return impl_->replicas(); }

Mode Store::mode() const { return impl_->mode(); }

Duration Store::timeout() const { return impl_->timeout(); }

bool Store::hashes_keys() const { return impl_->hashes_keys(); }

Result<void> Store::AgreeOnEnvelopes(const std::optional<std::string>& keys) { return impl_->AgreeOnEnvelopes(keys); }

Result<WriteId> Store::MakeWriteId(std::string_view key, Version version) const {
  return impl_->MakeWriteId(key, std::move(version));
}

std::shared_ptr<Server> Store::UseServer(const StoreOptions& options, const std::any& target, std::string address) {
  return impl_->UseServer(options, target, std::move(address));
}

std::shared_ptr<Lead> Store::NameServer(const StoreOptions& options, const std::any& target, std::string address) {
  return impl_->NameServer(options, target, std::move(address));
}

std::shared_ptr<Lead> Store::Reach(const std::shared_ptr<Lead>& before, const StoreOptions& options,
                                   const std::any& target, std::string address, int descriptor) {
  return impl_->Reach(before, options, target, std::move(address), descriptor);
}

std::vector<std::shared_ptr<Server>> Store::Servers(bool own) { return impl_->Servers(own); }

std::vector<std::string> Store::Gone(bool own) { return impl_->Gone(own); }

std::string Store::Undiscovered(bool own) const { return impl_->Undiscovered(own); }

std::shared_ptr<Server> Store::ServerAt(std::string_view address) const { return impl_->ServerAt(address); }

}  // namespace antipode
