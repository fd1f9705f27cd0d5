#include "engine/waiters.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>
#include <tuple>

namespace antipode {
namespace {

constexpr std::size_t kMostObjects = 200;
constexpr int kInARow = 5;
// Unknown epochs, and keys and epochs that timed out; the oldest are forgotten first.
constexpr std::size_t kMostKept = 1000;
std::atomic<Duration::rep> linger{std::chrono::duration_cast<Duration>(std::chrono::seconds(10)).count()};

// What its time-outs count by: the epoch of a position, the key of an object (BAR-40).
const std::string& CountedBy(const PendingWait& need) { return need.is_position ? need.epoch : need.write_id.key(); }

// Whoever settles a need has room for its group beforehand: behind that nothing may fail (BAR-61).
void MakeRoom(Groups& released, std::size_t more) {
  if (released.capacity() - released.size() >= more) return;
  released.reserve(std::max(released.size() + more, 2 * released.capacity()));
}

// Forgets the oldest past the bound.
template <class Map>
void Bound(Map& map) {
  if (map.size() <= kMostKept) return;
  map.erase(std::min_element(map.begin(), map.end(),
                             [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
}

std::string OneDecimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

}  // namespace

Duration Linger() noexcept { return Duration(linger.load(std::memory_order_relaxed)); }

void SetLinger(Duration value) noexcept { linger.store(value.count(), std::memory_order_relaxed); }

bool WaitQueue::awaited() const {
  const auto waits = [](const NeedPtr& need) {
    return !need->done && !need->group.follows && need->group.timeout != Duration::zero();
  };
  for (const auto& [epoch, queue] : ordered_) {
    const std::vector<NeedPtr> needs = queue.All();
    if (std::any_of(needs.begin(), needs.end(), waits)) return true;
  }
  return std::any_of(others_.begin(), others_.end(), [&](const OtherWaits& others) {
    return std::any_of(others.needs.begin(), others.needs.end(), waits);
  });
}

Groups WaitQueue::Changing(bool own) const {
  Groups changing;
  for (const NeedPtr& need : All()) {
    if (need->group.has_changed && need->group.is_own == own) changing.push_back(need->group.shared_from_this());
  }
  std::sort(changing.begin(), changing.end());
  changing.erase(std::unique(changing.begin(), changing.end()), changing.end());
  return changing;
}

std::optional<std::uint64_t> WaitQueue::Nearest(const std::string& epoch) {
  if (only_follows() || !others_.empty()) return std::nullopt;
  std::optional<std::uint64_t> nearest;
  for (auto& [each, queue] : ordered_) {
    const PendingWait* first = queue.First();
    if (first == nullptr) continue;
    if (each != epoch) return std::nullopt;
    nearest = first->counter;
  }
  for (const auto& [each, probe] : probes_) {
    if (each != epoch) return std::nullopt;
    if (!nearest || probe.counter < *nearest) nearest = probe.counter;
  }
  return nearest;
}

bool WaitQueue::WriteOrder::operator()(const WriteId* one, const WriteId* other) const noexcept {
  if (const int order = one->key().compare(other->key()); order != 0) return order < 0;
  const Ordered* version = one->ordered();
  const Ordered* others = other->ordered();
  if (version == nullptr && others == nullptr) return one->opaque()->mark < other->opaque()->mark;
  if (version == nullptr || others == nullptr) return version == nullptr;
  return std::tie(version->epoch, version->counter) < std::tie(others->epoch, others->counter);
}

bool WaitQueue::Add(PendingWait& need, Duration lag) {
  const bool is_look = need.group.timeout == Duration::zero() || !Overload(need, lag, need.since).empty();
  if (is_look) looks_.push_back(Hold(need));
  bool rides_along = false;
  try {
    rides_along = Keep(need);
  } catch (const std::bad_alloc&) {
    if (is_look) looks_.pop_back();
    throw;
  }
  need.parked = true;
  need.first_round = rounds_ + 1;
  Count(need, 1);
  return rides_along && !is_look;
}

// Why waiting on is known to be in vain; empty where it is not.
std::string WaitQueue::Overload(const PendingWait& need, Duration lag, TimePoint now) const {
  // In dry-run nobody waits, and a record is of what the server said (REC-13). An unknown epoch is waited for
  // (EPOCH-13).
  if (need.group.follows || unknown_.count(need.epoch) > 0) return {};
  const Duration timeout = need.group.timeout;
  if (lag > timeout) return "it lags by " + OneDecimal(Seconds(lag)) + " s, longer than the deadline";
  const StuckBy& stuck_by = need.is_position ? stuck_epochs_ : stuck_keys_;
  const auto found = stuck_by.find(CountedBy(need));
  if (found == stuck_by.end()) return {};
  const TimeoutStreak& stuck = found->second;
  if (stuck.times < kInARow || timeout > 2 * stuck.shortest || now - stuck.last > Linger()) return {};
  return std::to_string(stuck.times) + " waits in a row timed out there";
}

void WaitQueue::NoteTimeout(const PendingWait& need, TimePoint now) {
  const WaitGroup& group = need.group;
  if (group.follows || group.cancelled.load(std::memory_order_relaxed) || group.overloaded) return;
  if (group.timeout == Duration::zero() || need.since < moved_at_ || unknown_.count(need.epoch) > 0) return;
  if (now - need.since < group.timeout / 2) return;
  StuckBy& stuck_by = StuckOf(need);
  const auto [found, is_new] = stuck_by.try_emplace(CountedBy(need), TimeoutStreak{0, group.timeout, now});
  TimeoutStreak& stuck = found->second;
  if (!is_new && now - stuck.last > Linger()) stuck = {0, group.timeout, now};
  stuck = {stuck.times + 1, std::min(stuck.shortest, group.timeout), now};
  Bound(stuck_by);
}

// Unknown epochs are kept while somebody waits for them, and ten seconds longer (BAR-60).
void WaitQueue::ForgetOld(TimePoint now) {
  Bound(unknown_);
  for (auto each = unknown_.begin(); each != unknown_.end();) {
    each = now - each->second.last > Linger() ? unknown_.erase(each) : std::next(each);
  }
}

void WaitQueue::Count(const PendingWait& need, int change) {
  live_ += static_cast<std::size_t>(change);  // a negative one wraps round, and takes one away
  if (need.group.follows) followed_ += static_cast<std::size_t>(change);
}

bool WaitQueue::Keep(PendingWait& need) {
  if (!need.is_position) {
    const auto found = by_write_.find(&need.write_id);
    if (found != by_write_.end()) {
      found->second->needs.push_back(Hold(need));
      return false;
    }
    std::list<OtherWaits> made;
    made.push_back({need.write_id, {Hold(need)}});
    by_write_.emplace(&made.front().write_id, made.begin());
    others_.splice(others_.end(), made);
    return false;
  }
  PositionQueue& queue = ordered_[need.epoch];
  const PendingWait* first = queue.First();
  const bool rides_along = first != nullptr && first->counter <= need.counter && first->answer.has_value();
  queue.Push(Hold(need));
  return rides_along;
}

void WaitQueue::GiveUp(PendingWait& need, TimePoint now) noexcept {
  if (need.done.load(std::memory_order_relaxed)) return;
  need.group.Settle(need, nullptr);
  if (!need.parked) return;  // the deadline came before its turn
  Count(need, -1);
  if (!looks_.empty()) {  // what is kept would keep the server, too, while that does not answer
    looks_.erase(std::remove_if(looks_.begin(), looks_.end(), [&](const NeedPtr& each) { return each.get() == &need; }),
                 looks_.end());
  }
  ForgetOther(need);
  const auto queue = need.is_position ? ordered_.find(need.epoch) : ordered_.end();
  if (queue != ordered_.end()) queue->second.GivenUp();
  if (need.group.is_outdated()) return;  // its barrier goes on elsewhere
  try {
    Remember(need, now);
  } catch (const std::bad_alloc&) {  // whoever comes next waits as if this one had not
    return;
  }
}

// What a wait in vain tells of the next ones, and for whom a prober goes on.
void WaitQueue::Remember(const PendingWait& need, TimePoint now) {
  NoteTimeout(need, now);
  if (!need.is_position || need.group.cancelled.load(std::memory_order_relaxed)) return;
  const auto probe = probes_.find(need.epoch);
  if (probe == probes_.end() || need.counter < probe->second.counter) {
    probes_.insert_or_assign(need.epoch, Probe{need.counter, need.since, need.write_id});
  }
}

void WaitQueue::ForgetOther(const PendingWait& need) noexcept {
  const auto found = need.is_position ? by_write_.end() : by_write_.find(&need.write_id);
  if (found == by_write_.end()) return;
  const auto others = found->second;
  std::vector<NeedPtr>& needs = others->needs;
  needs.erase(std::remove_if(needs.begin(), needs.end(), [&](const NeedPtr& each) { return each.get() == &need; }),
              needs.end());
  if (!needs.empty()) return;
  by_write_.erase(found);  // first: it looks into the list
  others_.erase(others);
}

std::vector<WriteId> WaitQueue::Choose(TimePoint now, TimePoint wanted_at) {
  ++rounds_;
  ForgetOld(now);
  std::vector<WriteId> chosen;
  for (auto queue = ordered_.begin(); queue != ordered_.end();) {
    const PendingWait* first = queue->second.First();
    if (first == nullptr) {
      queue = ordered_.erase(queue);
    } else {
      chosen.push_back(first->write_id);
      ++queue;
    }
  }
  for (auto probe = probes_.begin(); probe != probes_.end();) {
    if (Since(std::max(probe->second.since, wanted_at), now) > Linger()) {
      probe = probes_.erase(probe);
      continue;
    }
    const PendingWait* first = First(probe->first);
    if (first == nullptr || probe->second.counter < first->counter) chosen.push_back(probe->second.write_id);
    ++probe;
  }
  const std::size_t count = std::min(others_.size(), kMostObjects);
  for (std::size_t number = 0; number < count; ++number) {  // the next round begins with the others
    chosen.push_back(others_.front().write_id);
    others_.splice(others_.end(), others_, others_.begin());
  }
  return chosen;
}

PendingWait* WaitQueue::First(const std::string& epoch) {
  const auto queue = ordered_.find(epoch);
  return queue == ordered_.end() ? nullptr : queue->second.First();
}

void WaitQueue::Answer(const std::vector<WriteId>& ids, const std::vector<Visibility>& answers, const Ends& applied,
                     TimePoint now, const Proof& proof, const std::string& current, Duration lag, Groups& released) {
  if (!applied.empty() && applied != applied_) {
    applied_ = applied;
    moved_at_ = now;
    stuck_epochs_.clear();
    stuck_keys_.clear();
  }
  for (std::size_t place = 0; place < ids.size(); ++place) {
    if (ids[place].is_position()) {
      AnswerPosition(ids[place], answers[place], now, proof, released);
    } else {
      AnswerOther(ids[place], answers[place], proof, released);
    }
  }
  static const Visibility visible = Visibility::Visible();
  for (const auto& [epoch, counter] : applied) {
    const auto queue = ordered_.find(epoch);
    if (queue != ordered_.end()) Reach(queue->second, counter, visible, proof, released);
    DropProbe(epoch, counter);
  }
  if (!looks_.empty()) EndLooks(released, current, lag, now);
}

void WaitQueue::Reach(PositionQueue& queue, std::uint64_t counter, const Visibility& answer, const Proof& proof,
                    Groups& released) {
  MakeRoom(released, 1);
  while (const NeedPtr need = queue.TakeReached(counter)) {
    Settle(*need, &answer, &proof, released);
    MakeRoom(released, 1);
  }
}

Groups WaitQueue::AnswerAll(const Visibility& answer) {
  Groups released;
  for (const NeedPtr& need : TakeAll(released)) Settle(*need, &answer, nullptr, released);
  return released;
}

Groups WaitQueue::LeaveOut() {
  Groups released;
  for (const NeedPtr& need : TakeAll(released)) {
    if (need->done.load(std::memory_order_relaxed)) continue;
    need->left_out = true;
    Settle(*need, nullptr, nullptr, released);
  }
  return released;
}

std::vector<NeedPtr> WaitQueue::All() const {
  std::vector<NeedPtr> needs;
  for (const auto& [epoch, queue] : ordered_) {
    for (NeedPtr& need : queue.All()) needs.push_back(std::move(need));
  }
  for (const OtherWaits& others : others_) needs.insert(needs.end(), others.needs.begin(), others.needs.end());
  return needs;
}

// All of them; where there is no memory for it, none.
std::vector<NeedPtr> WaitQueue::TakeAll(Groups& released) {
  std::vector<NeedPtr> needs = All();
  MakeRoom(released, needs.size());
  ordered_.clear();
  by_write_.clear();
  others_.clear();
  looks_.clear();  // they are among them
  return needs;
}

// By the first question that was asked for it is answered who only looks (BAR-29), or waits in vain (BAR-40).
void WaitQueue::EndLooks(Groups& released, const std::string& epoch, Duration lag, TimePoint now) {
  MakeRoom(released, looks_.size());
  std::vector<NeedPtr> left;
  left.reserve(looks_.size());
  for (const NeedPtr& need : looks_) {
    if (need->done.load(std::memory_order_relaxed)) continue;
    const bool hopes = need->group.timeout > Duration::zero();
    if (need->first_round > rounds_ || !need->answer || (hopes && need->answer->unanswered)) {
      // Not asked for, or not answered yet.
      left.push_back(need);
      continue;
    }
    if (hopes) {
      const std::string why = Overload(*need, need->epoch == epoch ? lag : Duration::zero(), now);
      if (why.empty()) continue;  // it waits on
      need->overloaded = true;
      need->answer = Visibility::NotYet((need->answer->reason.empty() ? "" : need->answer->reason + "; ") + why);
    }
    Count(*need, -1);
    ForgetOther(*need);
    if (need->group.Settle(*need, nullptr)) released.push_back(need->group.shared_from_this());
    if (need->is_position) {
      const auto queue = ordered_.find(need->epoch);
      if (queue != ordered_.end()) queue->second.GivenUp();
    }
  }
  looks_ = std::move(left);
}

void WaitQueue::DropProbe(const std::string& epoch, std::uint64_t applied) {
  const auto probe = probes_.find(epoch);
  if (probe != probes_.end() && probe->second.counter <= applied) probes_.erase(probe);
}

void WaitQueue::AnswerPosition(const WriteId& write_id, const Visibility& answer, TimePoint now, const Proof& proof,
                             Groups& released) {
  const auto& [epoch, counter] = *write_id.ordered();
  PositionQueue none;
  const auto found = ordered_.find(epoch);
  PositionQueue& queue = found == ordered_.end() ? none : found->second;
  PendingWait* first = queue.First();
  if (answer.verdict == Verdict::kVisible) {
    // Without a call of `Applied` in the same reply this proves no more than what was asked.
    Reach(queue, counter, answer, proof, released);
    DropProbe(epoch, counter);
  } else if (answer.unknown_epoch) {
    const TimePoint since =
        unknown_.try_emplace(epoch, UnknownEpoch{first != nullptr ? first->since : now, now}).first->second.since;
    unknown_[epoch].last = now;
    Bound(unknown_);
    const Visibility never = Visibility::Unproven("unknown epoch: " + answer.reason, UnprovenKind::kHistory);
    MakeRoom(released, queue.size());
    for (const NeedPtr& need : queue.All()) {
      need->answer = answer;
      if (now - since >= need->group.timeout) Settle(*need, &never, nullptr, released);
    }
  } else if (answer.verdict == Verdict::kUnproven) {
    MakeRoom(released, queue.size());
    // Positions of one epoch are a prefix: what cannot be proved up to here cannot be proved beyond.
    for (const NeedPtr& need : queue.From(counter)) Settle(*need, &answer, nullptr, released);
    probes_.erase(epoch);
  } else {
    if (first != nullptr) first->answer = answer;
    for (const NeedPtr& need : looks_) {  // what is not there up to here is not there beyond
      if (need->done.load(std::memory_order_relaxed)) continue;  // it changes no more: somebody may read it
      if (need->epoch == epoch && need->counter >= counter && need->first_round <= rounds_) need->answer = answer;
    }
  }
}

void WaitQueue::AnswerOther(const WriteId& write_id, const Visibility& answer, const Proof& proof, Groups& released) {
  const auto found = by_write_.find(&write_id);
  if (found == by_write_.end()) return;
  if (answer.verdict == Verdict::kNotYet) {
    for (const NeedPtr& need : found->second->needs) {
      need->answer = answer;
      need->repeats = need->repeats && answer.unanswered && in_turns_;
    }
    return;
  }
  const auto others = found->second;
  MakeRoom(released, others->needs.size());
  const std::vector<NeedPtr> needs = std::move(others->needs);
  by_write_.erase(found);  // first: it looks into the list
  others_.erase(others);
  for (const NeedPtr& need : needs) Settle(*need, &answer, &proof, released);
}

// There is room for its group.
void WaitQueue::Settle(PendingWait& need, const Visibility* answer, const Proof* proof, Groups& released) noexcept {
  if (need.done.load(std::memory_order_relaxed)) return;
  Count(need, -1);
  StuckOf(need).erase(CountedBy(need));
  if (need.is_position && rounds_ > need.first_round) need.repeats = false;  // the first look did not show it (BAR-63)
  if (need.group.Settle(need, answer, proof)) released.push_back(need.group.shared_from_this());
}

}  // namespace antipode
