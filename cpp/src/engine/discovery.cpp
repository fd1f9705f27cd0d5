// What a store does to have its servers named: it asks functions, and looks at connections (BAR-22, BAR-52 to BAR-54).
#include "engine/discovery.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "antipode/logs.h"
#include "engine/need.h"
#include "engine/threads.h"
#include "store/server.h"
#include "store/server_list.h"
#include "store/store_impl.h"

namespace antipode {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);  // between two questions while somebody waits

// The application's own function may throw as well as answer with an error.
Result<Targets> ListedBy(const ListTargets& list) {
  try {
    return list();
  } catch (const std::exception& error) {
    return Error{ErrorCode::kConfiguration, "AP207", error.what()};
  } catch (...) {
    return Error{ErrorCode::kConfiguration, "AP207", "the function threw something that is no exception"};
  }
}

std::int64_t Ticks(TimePoint now) noexcept { return now.time_since_epoch().count(); }

}  // namespace

bool Store::Impl::Source::IsCurrent(TimePoint now) const noexcept {
  return given_at.has_value() && told_at.has_value() && now - *told_at <= discovery::current.load();
}

std::string Store::Impl::Undiscovered(bool own) const {
  const TimePoint now = Clock::now();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (own && !(own_.empty() && reached_.empty())) return {};
  for (const auto& source : sources_) {
    if (!source->given_at || now - *source->given_at > discovery::stands.load()) return source->words;
    if (!source->IsCurrent(now)) return "what was said of them is too old";
  }
  return {};
}

bool Store::Impl::RefreshDue(TimePoint now) const noexcept {
  if (!looks_.load(std::memory_order_acquire)) return false;
  return Ticks(now) - refreshed_at_.load() > discovery::refresh.load().count() || Ticks(now) > known_until_.load();
}

void Store::Impl::RefreshLater() {
  if (Ticks(Clock::now()) - refreshed_at_.load() >= discovery::retry.load().count()) BeginRefresh();
}

void Store::Impl::BeginRefresh() noexcept {
  if (!threads::MayStart() || refreshing_.exchange(true)) return;
  refreshed_at_.store(Ticks(Clock::now()));
  try {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (refresher_) refresher_->join();  // it has ended: it was it that took `refreshing_` back
    refresher_.reset();
    refresher_ = threads::Start("antipode-list", [this] { RefreshNow(); });
  } catch (const std::exception& error) {  // whoever comes next asks for a thread again (BAR-61)
    logs::Say("AP209", LogLevel::kWarning, "no thread asks for the servers of a store", error.what());
    MissNames();
  }
}

// Tells those who wait for names that nobody asks for them.
void Store::Impl::MissNames() noexcept {
  std::vector<std::weak_ptr<WaitGroup>> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting.swap(await_names_);
    refreshing_.store(false);  // under the lock: who comes now has another thread begin
  }
  for (const auto& each : waiting) {
    const auto group = each.lock();
    if (group && group->MissNames()) threads::Insist([&] { ReleaseAll({group}); });
  }
}

void Store::Impl::RefreshNow() noexcept {
  Duration pause = kFirstPause;
  while (true) {
    try {
      const Result<void> done = Refresh();
      if (!done.ok()) {  // the application's function: its last answer stands for a while
        logs::Warn("AP207", "replicas " + name_,
                   "the function for the replicas of " + name_ + " failed: " + done.error().Words());
      }
    } catch (const std::exception& error) {  // the next one goes on with what this one left (BAR-61)
      logs::Say("AP209", LogLevel::kWarning, "the thread that asks for the servers of a store failed", error.what());
    }
    if (!threads::Insist([this] { return TellNames(); })) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, discovery::retry.load());
  }
}

// Those who wait for names go on where the names are there; true where somebody waits on, else this thread ends.
bool Store::Impl::TellNames() {
  Groups waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& each : await_names_) {
      if (auto group = each.lock()) waiting.push_back(std::move(group));
    }
  }
  EndOutdated(waiting);
  const auto is_over = [](const std::weak_ptr<WaitGroup>& each) {
    const auto group = each.lock();
    return group == nullptr || group->IsOver();
  };
  const std::lock_guard<std::mutex> lock(mutex_);
  await_names_.erase(std::remove_if(await_names_.begin(), await_names_.end(), is_over), await_names_.end());
  const bool goes_on = !await_names_.empty() && threads::MayStart();
  if (!goes_on) refreshing_.store(false);  // under the lock: who comes now begins another thread
  return goes_on;
}

void Store::Impl::AwaitNames(const std::shared_ptr<WaitGroup>& group, bool own) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (own && !(own_.empty() && reached_.empty())) return;
    const auto is_unknown = [now = Clock::now()](const auto& source) { return !source->IsCurrent(now); };
    if (std::none_of(sources_.begin(), sources_.end(), is_unknown)) return;
    await_names_.push_back(group);
    group->AwaitNames();
  }
  BeginRefresh();
}

std::uint64_t Store::Impl::LookAgain() {
  if (RefreshDue(Clock::now())) RefreshLater();
  return generation();
}

bool Store::Impl::HasLost(const Server& server, bool own) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Find(Judged(own), server.address()).get() != &server;
}

// Looks at the connections, and asks the functions again. An empty answer, and an error, are a fault of theirs: the
// last answer stands for a while (BAR-53).
Result<void> Store::Impl::Refresh() {
  const TimePoint began = Clock::now();
  LookAtLeads();
  std::vector<std::shared_ptr<Source>> sources;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sources = sources_;
  }
  Result<void> done;
  for (const auto& source : sources) {
    const TimePoint asked_at = Clock::now();
    const Result<Targets> listed = ListedBy(source->list);
    if (listed.ok() && !listed->empty()) {
      Take(*source, *listed, asked_at);
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (source->told_at && asked_at < *source->told_at) continue;  // a later question has come to something
      // Its last answer stands again: who waits for another one goes on.
      if (source->given_at && !source->IsCurrent(Clock::now())) generation_->fetch_add(1, std::memory_order_acq_rel);
      source->told_at = asked_at;
      source->words = listed.ok() ? "the function for them names no server" : listed.error().Words();
      if (!listed.ok()) done = listed.error();
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const ServersByAddress listed = Listed();
  const auto is_over = [&](const auto& each) {
    return !each->impl().Asking() || Find(own_, each->address()) || Find(listed, each->address());
  };
  former_.erase(std::remove_if(former_.begin(), former_.end(), is_over), former_.end());
  TimePoint until = TimePoint::max();
  for (const auto& source : sources_) {
    if (!source->given_at) until = TimePoint();
    if (until == TimePoint()) break;
    until = std::min({until, *source->given_at + discovery::stands.load(),
                      source->told_at.value_or(*source->given_at) + discovery::current.load()});
  }
  known_until_.store(Ticks(until));
  refreshed_at_.store(Ticks(began));
  return done;
}

// One answer, unless a later question was answered; a server that nobody names any more is gone.
void Store::Impl::Take(Source& source, const Targets& targets, TimePoint asked_at) {
  ServersByAddress named;  // those of before, in the end: what nobody holds goes without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (source.told_at && asked_at < *source.told_at) return;
  const TimePoint now = Clock::now();  // under the lock: who found the last answer too old did so before
  for (const std::any& target : targets) {
    std::string address = shim_->Address(target);
    if (!Find(named, address)) named.push_back(Known(target, std::move(address)));
  }
  // Its thread may not be the last to hold a server.
  former_.insert(former_.end(), source.servers.begin(), source.servers.end());
  source.servers.swap(named);
  try {
    const ServersByAddress listed = Listed();
    for (const auto& server : named) {
      if (!Find(listed, server->address())) gone_[server->address()] = now;
    }
  } catch (const std::bad_alloc&) {  // who leaves is named: they leave the next time (BAR-61)
    source.servers.swap(named);
    throw;
  }
  for (const auto& server : source.servers) gone_.erase(server->address());
  if (!source.IsCurrent(now) || named != source.servers) generation_->fetch_add(1, std::memory_order_acq_rel);
  source.given_at = now;
  source.told_at = asked_at;
}

}  // namespace antipode
