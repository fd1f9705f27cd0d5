#include "engine/server_poller.h"

#include <exception>
#include <utility>

#include "antipode/store.h"
#include "store/ages.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode {

std::shared_ptr<Server> MakeServer(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target) {
  return std::make_shared<ServerPoller>(store, std::move(shim), std::move(address), std::move(target));
}

ServerPoller::ServerPoller(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target)
    : Impl(store, std::move(address), std::move(target)),
      state_(store, std::move(shim)),
      asker_(*this, state_) {}

ServerPoller::~ServerPoller() { asker_.End(); }

std::chrono::nanoseconds ServerPoller::AskTimeout() const { return antipode::AskTimeout(); }

void ServerPoller::Applied(const std::string& instance, const std::string& epoch, const Ends& positions) {
  const TimePoint now = Clock::now();
  const std::lock_guard<std::mutex> lock(state_.mutex);
  state_.proofs.Take(instance, epoch, positions, state_.waiters);
  const auto own = positions.find(epoch);
  if (own != positions.end() && !state_.proofs.Overtaken()) {
    state_.growth.Note(instance, epoch, state_.proofs.asked_at(), own->second);
  }
  store().impl().ages().Note(epoch, own == positions.end() ? 0 : own->second, now);
}

void ServerPoller::BeginQuestion() {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  state_.proofs.Asked(Clock::now());
}

void ServerPoller::Reset() {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  state_.proofs.Drop();
}

bool ServerPoller::Awaited() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.waiters.awaited();
}

std::optional<std::uint64_t> ServerPoller::AppliedIn(const std::string& epoch) const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  const auto found = state_.proofs.applied().find(epoch);
  return found == state_.proofs.applied().end() ? std::nullopt : std::optional(found->second);
}

bool ServerPoller::Interrupted() const noexcept { return asker_.Poked(); }

std::uint64_t ServerPoller::generation() const noexcept { return state_.proofs.generation(); }

namespace {

// What is known of a write for which this process can ask nobody: it has no descriptor, thread or memory.
Visibility NotAsked(const std::string& address, const std::exception& error) noexcept {
  std::optional<Visibility> said;
  std::string words;
  try {
    words = "this process can start nothing that asks " + address + " (" + error.what() + ")";
  } catch (const std::bad_alloc&) {
    words.clear();
  }
  Say(said, Visibility::Unproven({}, UnprovenKind::kOwnFault), words);
  return *std::move(said);
}

}  // namespace

bool ServerPoller::Park(PendingWait& need) noexcept {
  bool rides_along = true;
  const TimePoint now = Clock::now();
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (need.done.load(std::memory_order_relaxed)) return false;  // its barrier has given up meanwhile
    state_.wanted_at = now;
    state_.hurried = state_.hurried || !need.group.follows;
    const std::optional<Proof> proof = state_.KeptProof(need, now);
    const bool is_out = state_.reach.IsOut(now);
    try {
      asker_.Ensure();
      if (!proof && !is_out) {
        rides_along = state_.waiters.Add(need, state_.LagOf(need.epoch, now));
      }
    } catch (const std::exception& error) {
      if (!proof) {
        const Visibility answer = NotAsked(address(), error);
        return need.group.Settle(need, &answer);
      }
    }
    if (proof) {
      const Visibility visible = Visibility::Visible();
      return need.group.Settle(need, &visible, &*proof);
    }
    if (is_out) {
      need.left_out = true;
      return need.group.Settle(need, nullptr);
    }
  }
  if (!rides_along) asker_.Poke();
  return false;
}

void ServerPoller::GiveUp(PendingWait& need) noexcept {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  state_.waiters.GiveUp(need, Clock::now());
}

void ServerPoller::Refuse(PendingWait& need, const Visibility& answer) {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  if (need.done.load(std::memory_order_relaxed)) return;
  need.answer = answer;
  state_.waiters.GiveUp(need, Clock::now());
}

void ServerPoller::CopyTo(PendingWait& copy, const PendingWait& need) const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  copy.answer = need.answer;
  copy.left_out = need.left_out;
  copy.seen = need.seen;
}

bool ServerPoller::Holds(const std::string& epoch, std::uint64_t counter) const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.proofs.Hold(epoch, counter, Clock::now(), InForce()->free_path_ttl);
}

std::optional<std::uint64_t> ServerPoller::ProofOf(const std::string& epoch, std::uint64_t counter) const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  if (!state_.proofs.Cover(epoch, counter)) return std::nullopt;
  return state_.proofs.generation();
}

bool ServerPoller::StillHolds(std::uint64_t proof, TimePoint now, std::chrono::nanoseconds ttl) const noexcept {
  return state_.proofs.Fresh(proof, now, ttl);
}

std::string ServerPoller::Position() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.proofs.Position();
}

std::string ServerPoller::Down() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.reach.Down();
}

void ServerPoller::Retire() {
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    state_.wanted_at = kNever;
  }
  asker_.End();
}

bool ServerPoller::Asking() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return asker_.Runs();
}

std::size_t ServerPoller::Waiting() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return state_.waiters.live();
}

std::optional<TimePoint> ServerPoller::ProbedSince(const std::string& epoch) const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  const auto probe = state_.waiters.probes().find(epoch);
  return probe == state_.waiters.probes().end() ? std::nullopt : std::optional(probe->second.since);
}

void ServerPoller::BeforeFork() { state_.mutex.lock(); }

void ServerPoller::AfterForkInParent() { state_.mutex.unlock(); }

void ServerPoller::AfterForkInChild() {
  state_.mutex.unlock();
  state_.AfterFork();
  asker_.AfterFork();
}

}  // namespace antipode
