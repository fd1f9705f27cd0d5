#include "antipode/server.h"

#include <exception>
#include <utility>

#include "antipode/store.h"
#include "engine/ages.h"
#include "engine/asker.h"
#include "engine/server_inside.h"

namespace antipode {

Server::Server(Store& store, std::shared_ptr<Shim> shim, std::string address, std::any target)
    : inside_(std::make_unique<Inside>(*this, store, std::move(shim), std::move(address), std::move(target))) {}

Server::~Server() { inside_->asker.End(); }

Store& Server::store() const noexcept { return inside_->store; }

const std::string& Server::address() const noexcept { return inside_->address; }

const std::any& Server::target() const noexcept { return inside_->target; }

std::chrono::nanoseconds Server::AskTimeout() const { return antipode::AskTimeout(); }

void Server::Applied(const std::string& instance, const std::string& epoch, const Ends& positions) {
  const TimePoint now = Clock::now();
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  inside_->proofs.Take(instance, epoch, positions, inside_->waiters);
  const auto own = positions.find(epoch);
  if (own != positions.end() && !inside_->proofs.Overtaken()) {
    inside_->growth.Note(instance, epoch, inside_->proofs.asked_at(), own->second);
  }
  inside_->store.ages().Note(epoch, own == positions.end() ? 0 : own->second, now);
}

void Server::BeginQuestion() {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  inside_->proofs.Asked(Clock::now());
}

void Server::Reset() {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  inside_->proofs.Drop();
}

bool Server::Awaited() const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return inside_->waiters.awaited();
}

std::optional<std::uint64_t> Server::AppliedIn(const std::string& epoch) const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  const auto found = inside_->proofs.applied().find(epoch);
  return found == inside_->proofs.applied().end() ? std::nullopt : std::optional(found->second);
}

bool Server::Interrupted() const noexcept { return inside_->asker.Poked(); }

std::uint64_t Server::generation() const noexcept { return inside_->proofs.generation(); }

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

bool Server::Park(Need& need) noexcept {
  bool rides_along = true;
  const TimePoint now = Clock::now();
  {
    const std::lock_guard<std::mutex> lock(inside_->mutex);
    if (need.done.load(std::memory_order_relaxed)) return false;  // its barrier has given up meanwhile
    inside_->wanted_at = now;
    inside_->hurried = inside_->hurried || !need.group.follows;
    const std::optional<Proof> proof = inside_->KeptProof(need, now);
    const bool is_out = inside_->reach.IsOut(now);
    try {
      inside_->asker.Ensure();
      if (!proof && !is_out) {
        rides_along = inside_->waiters.Add(need, inside_->LagOf(need.epoch, now));
      }
    } catch (const std::exception& error) {
      if (!proof) {
        const Visibility answer = NotAsked(inside_->address, error);
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
  if (!rides_along) inside_->asker.Poke();
  return false;
}

void Server::GiveUp(Need& need) noexcept {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  inside_->waiters.GiveUp(need, Clock::now());
}

void Server::Refuse(Need& need, const Visibility& answer) {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  if (need.done.load(std::memory_order_relaxed)) return;
  need.answer = answer;
  inside_->waiters.GiveUp(need, Clock::now());
}

void Server::CopyTo(Need& copy, const Need& need) const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  copy.answer = need.answer;
  copy.left_out = need.left_out;
  copy.seen = need.seen;
}

bool Server::Holds(const std::string& epoch, std::uint64_t counter) const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return inside_->proofs.Hold(epoch, counter, Clock::now(), InForce()->free_path_ttl);
}

std::optional<std::uint64_t> Server::ProofOf(const std::string& epoch, std::uint64_t counter) const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  if (!inside_->proofs.Cover(epoch, counter)) return std::nullopt;
  return inside_->proofs.generation();
}

bool Server::StillHolds(std::uint64_t proof, TimePoint now, std::chrono::nanoseconds ttl) const noexcept {
  return inside_->proofs.Fresh(proof, now, ttl);
}

std::string Server::Position() const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return inside_->proofs.Position();
}

std::string Server::Down() const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return inside_->reach.Down();
}

void Server::Retire() {
  {
    const std::lock_guard<std::mutex> lock(inside_->mutex);
    inside_->wanted_at = kNever;
  }
  inside_->asker.End();
}

bool Server::Asking() const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return inside_->asker.Runs();
}

std::size_t Server::Waiting() const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  return inside_->waiters.live();
}

std::optional<TimePoint> Server::ProbedSince(const std::string& epoch) const {
  const std::lock_guard<std::mutex> lock(inside_->mutex);
  const auto probe = inside_->waiters.probes().find(epoch);
  return probe == inside_->waiters.probes().end() ? std::nullopt : std::optional(probe->second.since);
}

void Server::BeforeFork() { inside_->mutex.lock(); }

void Server::AfterForkInParent() { inside_->mutex.unlock(); }

void Server::AfterForkInChild() {
  inside_->mutex.unlock();
  inside_->AfterFork();
}

// Inside

Server::Inside::Inside(Server& server, Store& of, std::shared_ptr<Shim> with, std::string at, std::any to)
    : store(of),
      store_name(of.name()),
      shim(std::move(with)),
      address(std::move(at)),
      target(std::move(to)),
      asker(server, *this) {}

std::optional<Proof> Server::Inside::KeptProof(const Need& need, TimePoint now) const {
  if (!need.is_position || proofs.proved_at() < need.fresh_from) return std::nullopt;
  if (!proofs.Hold(need.epoch, need.counter, now, InForce()->free_path_ttl)) return std::nullopt;
  return Proof{proofs.proved_at(), proofs.generation(), true};
}

Duration Server::Inside::LagOf(const std::string& epoch, TimePoint now) const {
  if (epoch.empty() || epoch != proofs.epoch()) return Duration::zero();
  const auto own = proofs.applied().find(epoch);
  return store.ages().Lag(epoch, own == proofs.applied().end() ? 0 : own->second, now);
}

void Server::Inside::AfterFork() {
  // What waited belongs to threads of the parent. It is left where it is: to end it would call back into the
  // application.
  new Waiters(std::move(waiters));  // NOLINT(cppcoreguidelines-owning-memory): left on purpose
  waiters = NoWaiters();
  proofs.Forget();
  reach.Answered();
  wanted_at = kNever;
  hurried = false;
  asker.AfterFork();
}

}  // namespace antipode
