#include "marker.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/shim/shim_tools.h"
#include "info.h"
#include "marks.h"
#include "marks_script.h"

namespace antipode::redis {
namespace {

using namespace std::chrono_literals;

constexpr auto kSoon = 50ms;  // a mark follows the first write after a pause so soon
constexpr auto kTimeout = 1s;
constexpr auto kFirstRetry = 250ms;
constexpr auto kLastRetry = 5s;
constexpr auto kRefused = 10s;
constexpr auto kExit = 150ms;  // what the end of the process may be delayed by, at most, a server

// Every marker of this process, for its end and for forks. Never destroyed: threads may outlive what is.
struct All {
  std::mutex mutex;
  std::vector<std::weak_ptr<Marker>> markers;
  std::vector<std::shared_ptr<Marker>> held;  // while the process forks
};

All& TheMarkers() {
  static auto* const all = new All();
  return *all;
}

std::vector<std::shared_ptr<Marker>> Living(const All& all) {
  std::vector<std::shared_ptr<Marker>> living;
  for (const auto& each : all.markers) {
    if (auto marker = each.lock()) living.push_back(std::move(marker));
  }
  return living;
}

void AtExit() {
  std::vector<std::shared_ptr<Marker>> living;
  {
    const std::lock_guard<std::mutex> lock(TheMarkers().mutex);
    living = Living(TheMarkers());
  }
  for (const auto& marker : living) marker->LastMark();
}

void BeforeFork() {
  All& all = TheMarkers();
  all.mutex.lock();
  all.held = Living(all);
  for (const auto& marker : all.held) marker->BeforeFork();
}

void InParent() {
  All& all = TheMarkers();
  for (const auto& marker : all.held) marker->AfterForkInParent();
  const auto held = std::move(all.held);
  all.held.clear();
  all.mutex.unlock();
}

void InChild() {
  All& all = TheMarkers();
  for (const auto& marker : all.held) marker->AfterForkInChild();
  const auto held = std::move(all.held);
  all.held.clear();
  all.mutex.unlock();
}

void Install() {
  static const bool installed = [] {
    pthread_atfork(BeforeFork, InParent, InChild);
    std::atexit(AtExit);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace

Marker::Marker(std::string store, Target target, std::string key)
    : store_(std::move(store)),
      target_(std::move(target)),
      key_(std::move(key)),
      changed_(std::make_unique<std::condition_variable>()) {}

std::shared_ptr<Marker> Marker::Make(std::string store, Target target, std::string key) {
  Install();
  std::shared_ptr<Marker> made(new Marker(std::move(store), std::move(target), std::move(key)));
  All& all = TheMarkers();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto gone = [](const std::weak_ptr<Marker>& each) { return each.expired(); };
  all.markers.erase(std::remove_if(all.markers.begin(), all.markers.end(), gone), all.markers.end());
  all.markers.push_back(made);
  return made;
}

std::shared_ptr<const Facts> Marker::facts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return facts_;
}

void Marker::set_facts(Facts facts) {
  auto found = std::make_shared<const Facts>(std::move(facts));
  const std::lock_guard<std::mutex> lock(mutex_);
  facts_ = std::move(found);
}

// -- called in a request

void Marker::Wrote(const Ordered& position) {
  std::unique_lock<std::mutex> lock(mutex_);
  position_ = position;
  if (running_ && dirty_ && epoch_ == position.epoch) return;
  epoch_ = position.epoch;
  dirty_ = true;
  woken_ = true;
  Start(lock);
}

void Marker::AddUser() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++users_;
  Start(lock);
}

void Marker::RemoveUser() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --users_;
  changed_->notify_all();
}

void Marker::Start(std::unique_lock<std::mutex>& /*lock*/) {
  changed_->notify_all();
  if (running_ || ended_) return;
  try {
    Detach("antipode-marks", [self = shared_from_this()] { self->Run(); });
    running_ = true;
  } catch (const std::exception&) {
    running_ = false;  // no thread, or no memory for it, is to be had: the next write tries again (BAR-61)
  }
}

// -- the thread

void Marker::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  Nanoseconds pause = 0ns;
  Nanoseconds retry = kFirstRetry;
  while (!ended_ && (users_ > 0 || dirty_)) {
    // Whoever writes first after a pause wakes the thread; marks keep their distance by the script's clock.
    const bool woken =
        changed_->wait_for(lock, pause, [&] { return woken_ || ended_ || (users_ <= 0 && !dirty_); }) && woken_;
    woken_ = false;
    if (woken) changed_->wait_for(lock, std::min<Nanoseconds>(kSoon, MarkPeriod()), [&] { return ended_; });
    if (ended_) break;
    if (users_ <= 0 && !dirty_) continue;
    stepping_ = true;
    SessionReply<Nanoseconds> next = Failure{};
    try {
      next = Step(lock);
    } catch (const std::bad_alloc&) {  // the mark stays due (BAR-61)
      if (!lock.owns_lock()) lock.lock();
      dirty_ = dirty_ || position_.has_value();
    }
    stepping_ = false;
    if (next.ok()) {
      pause = *next;
      retry = kFirstRetry;
    } else if (next.failure().by_server) {
      const Failure failure = next.failure();
      lock.unlock();
      pause = Refused(failure);
      lock.lock();
    } else {  // the server cannot be reached: the mark stays due
      session_.reset();
      pause = retry;
      retry = std::min<Nanoseconds>(retry * 2, kLastRetry);
    }
    changed_->notify_all();
  }
  session_.reset();
  running_ = false;
  changed_->notify_all();
}

// Marks if a mark is due; how long the next look may take. The lock is held but while the server is asked.
SessionReply<Marker::Nanoseconds> Marker::Step(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Session> session = session_;
  const bool wants_facts = facts_ == nullptr;
  const std::optional<Ordered> position = position_;
  const bool was_dirty = std::exchange(dirty_, false);
  lock.unlock();
  const auto work = [&]() -> SessionReply<Said> {
    if (session == nullptr) {
      auto opened = Session::Open(target_, kTimeout);
      if (!opened.ok()) return opened.failure();
      session = *opened;
      if (wants_facts) {
        auto facts = Probe(*session, store_, key_);
        if (!facts.ok()) return facts.failure();
        set_facts(*facts);
      }
    }
    return Mark(*session, position, MarkPeriod());
  };
  auto said = work();
  lock.lock();
  session_ = session;
  if (!said.ok()) {
    dirty_ = dirty_ || was_dirty || position.has_value();
    return said.failure();
  }
  if (said->word == Word::kWait) {
    dirty_ = true;
    return std::max<Nanoseconds>(said->wait, 10ms);
  }
  if (said->word != Word::kReplica) NoteMarks(store_, {});
  return Nanoseconds(MarkPeriod());  // where nobody writes: has it become the primary of a new epoch?
}

SessionReply<Marker::Said> Marker::Mark(Session& session, const std::optional<Ordered>& position,
                               std::chrono::milliseconds period) {
  const std::string counter = std::to_string(position ? position->counter : 0);
  const std::string time = std::to_string(period.count());
  const std::string most = std::to_string(kMostMarks);
  const std::string digits = std::to_string(kEpochDigits);
  const std::string_view epoch = position ? std::string_view(position->epoch) : std::string_view();
  std::vector<std::string_view> words = {"EVALSHA", kMarkScriptSha, "1", key_, epoch, counter, time, most, digits};
  auto reply = session.Command(words);
  if (!reply.ok() && reply.failure().Code() == "NOSCRIPT") {
    words[0] = "EVAL";
    words[1] = kMarkScript;
    reply = session.Command(words);
  }
  if (!reply.ok()) return reply.failure();
  CountRequest(store_, "mark");
  if (reply->items.size() != 3) return Failure{false, "the script that marks answered something else"};
  const std::string& word = reply->items[0].text;
  Said said;
  said.wait = std::chrono::milliseconds(reply->items[1].integer);
  said.word = word == "wait"      ? Word::kWait
              : word == "replica" ? Word::kReplica
              : word == "backlog" ? Word::kBacklog
              : word == "covered" ? Word::kCovered
                                  : Word::kMarked;
  return said;
}

// The server answered with an error: no right, a full memory, a key of another type.
Marker::Nanoseconds Marker::Refused(const Failure& failure) {
  const std::string_view code = failure.Code();
  if (code == "LOADING" || code == "MASTERDOWN" || code == "BUSY") return kFirstRetry;
  const std::string address = target_.Address();
  NoteMarks(store_, address + ": " + failure.words);
  logs::Warn("AP508", "marks " + store_ + " " + address,
             "the epochs of " + store_ + " cannot be marked at " + address + ": " + failure.words +
                 ". Positions are given, and a failover or restart makes older ones unproven. " + Grant(key_));
  return kRefused;
}

// -- the end

void Marker::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  if (session_ != nullptr) session_->Interrupt();
  changed_->notify_all();
}

void Marker::LastMark() {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_ = true;
  changed_->notify_all();
  const auto deadline = Clock::now() + kExit;
  const bool idle = changed_->wait_until(lock, deadline, [&] { return !stepping_; });
  if (!idle || !dirty_ || !position_) return;
  const std::optional<Ordered> position = position_;
  dirty_ = false;
  lock.unlock();
  auto session = Session::Open(target_, kExit);
  if (session.ok()) static_cast<void>(Mark(**session, position, 0ms).ok());  // nobody is left to do it in a second
}

void Marker::AfterForkInChild() {
  // Its waiter stayed with the parent: a condition that somebody waits for can be neither used nor destroyed.
  static_cast<void>(changed_.release());
  changed_ = std::make_unique<std::condition_variable>();
  session_.reset();
  dirty_ = false;
  woken_ = false;
  running_ = false;
  stepping_ = false;
  mutex_.unlock();
}

}  // namespace antipode::redis
