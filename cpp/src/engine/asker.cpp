#include "engine/asker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <exception>
#include <new>
#include <random>
#include <system_error>
#include <utility>

#include "antipode/logs.h"
#include "engine/server_inside.h"
#include "engine/measures.h"
#include "engine/threads.h"

namespace antipode {
namespace {

using std::chrono::milliseconds;

constexpr int kSafetyNet = 10;  // the poll interval doubles up to so many times the shortest
// By so much it grows where nobody waits: when a write was seen is known to within a quarter, or the longest interval.
constexpr double kUnhurried = 1.25;
constexpr Duration kWaitSlice = milliseconds(100);
constexpr Duration kBreath = milliseconds(1);
constexpr Duration kNap = std::chrono::seconds(1);

thread_local const Asker* asking = nullptr;

Duration Jittered(Duration duration) {
  thread_local std::minstd_rand chance{std::random_device{}()};
  std::uniform_real_distribution<double> factor(0.9, 1.1);
  return Duration(static_cast<Duration::rep>(static_cast<double>(duration.count()) * factor(chance)));
}

// A client's exception is the server's own answer to the question.
template <class Question>
Answers Asked(const Question& question) {
  try {
    return question();
  } catch (const std::bad_alloc&) {
    return Answers::Refused("this process has no memory left", UnprovenKind::kOwnFault);
  } catch (const std::system_error& error) {
    return Answers::Refused(error.what(), UnprovenKind::kOwnFault);
  } catch (const std::exception& error) {
    return Answers::Refused(error.what());
  } catch (...) {
    return Answers::Refused("the shim threw something that is no exception");
  }
}

// Why this process cannot open a connection; empty where it can.
std::string OwnFault() {
  const int tried = eventfd(0, EFD_CLOEXEC);
  if (tried < 0) return "this process can open no connection: " + std::generic_category().message(errno);
  close(tried);
  return {};
}

}  // namespace

Asker::~Asker() {
  End();
  const int wake = wake_.load(std::memory_order_relaxed);
  if (wake >= 0) close(wake);
}

void Asker::Ensure() {
  if (running_ || !threads::MayStart()) return;
  if (thread_) thread_->join();  // it has given up the lock for the last time
  thread_.reset();
  if (wake_.load(std::memory_order_relaxed) < 0) {
    const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) throw std::system_error(errno, std::generic_category());
    wake_.store(wake);
  }
  ending_.store(false, std::memory_order_relaxed);
  thread_ = std::make_unique<std::thread>(threads::Named("antipode", [this] { Run(); }));
  running_ = true;
}

void Asker::Poke() noexcept {
  if (poked_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  const int wake = wake_.load(std::memory_order_acquire);
  if (wake >= 0 && write(wake, &one, sizeof one) < 0) {
    return;  // its counter is full: it is readable already
  }
}

void Asker::OnChange() noexcept {
  pushed_.store(true, std::memory_order_release);
  if (asking != this) Poke();
}

void Asker::End() {
  if (asking == this) return;
  std::unique_ptr<std::thread> thread;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    thread = std::move(thread_);
    ending_.store(true, std::memory_order_release);
  }
  if (!thread) return;
  Poke();
  thread->join();
}

void Asker::AfterFork() {
  static_cast<void>(thread_.release());  // the thread is the parent's; its handle must not be touched
  static_cast<void>(watch_.release());   // likewise what it talks by
  server_.session.reset();
  running_ = false;
  const int wake = wake_.exchange(-1);
  if (wake >= 0) close(wake);
  poked_.store(false);
  pushed_.store(false);
  ending_.store(false);
  watchable_ = true;
}

void Asker::Run() {
  asking = this;
  Pace pace;
  pace.retry = kFirstRetry;
  pace.asked_at = Clock::now() - kNap;
  while (true) {
    if (Idle()) {
      CloseChannel();  // not under the lock: a shim's close may wait for who is calling back
      if (Ended()) return;
    }
    Turn(pace);
  }
}

bool Asker::Idle() const {
  const std::lock_guard<std::mutex> lock(inside_.mutex);
  return NobodyWaits();
}

bool Asker::NobodyWaits() const {
  return ending_.load(std::memory_order_acquire) ||
         (inside_.waiters.live() == 0 && Since(inside_.wanted_at, Clock::now()) > Linger());
}

// Ends the thread's work, unless somebody has come; under the lock, so that a need parked now begins another one.
bool Asker::Ended() {
  Groups released;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    if (!NobodyWaits()) return false;
    running_ = false;
    inside_.hurried = false;
    released = inside_.waiters.AnswerAll(Visibility::NotYet("Antipode was shut down"));
    inside_.waiters.ForgetProbes();
    inside_.waiters.ForgetUnknown();
  }
  EndAll(released);
  return true;
}

// Sleeps until there is a reason to ask the server, and asks it once.
void Asker::Turn(Pace& pace) {
  TimePoint now = Clock::now();
  const auto in_force = InForce();
  const Duration own_pace = inside_.shim->OwnPace();
  const Duration shortest = std::max<Duration>({in_force->poll, own_pace, milliseconds(1)});
  bool wanted = false;
  bool unhurried = false;
  bool looked_at = false;
  bool down = false;
  TimePoint failed_at;
  TimePoint answered_at;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    wanted = inside_.waiters.wanted();
    down = inside_.reach.down();
    failed_at = inside_.reach.failed_at();
    answered_at = inside_.proofs.answered_at();
  }
  TimePoint due = now + kNap;
  if (down) {
    due = failed_at + pace.retry;
  } else if (wanted && pace.blocks && inside_.shim->capabilities().blocking_wait) {
    due = pace.asked_at + kBreath;  // the shim itself waits
  } else if (wanted) {
    due = pace.asked_at + Jittered(std::max(pace.interval, shortest));
  } else if (watch_ && in_force->free_path_ttl > Duration::zero()) {
    due = answered_at + std::max<Duration>(Duration(in_force->free_path_ttl) / 2, shortest);
  }
  const Woken woken = Sleep(std::min(due - now, kNap));
  now = Clock::now();
  if (ending_.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    down = inside_.reach.down();
    wanted = inside_.waiters.wanted();
    unhurried = inside_.waiters.only_follows();
    looked_at = inside_.waiters.looked_at();
  }
  if (now < due && (woken == Woken::kTime || down)) return;
  if (woken == Woken::kPush && (!wanted || (unhurried && !looked_at && now < due))) {
    return;  // whoever comes next asks anew
  }
  if (woken == Woken::kPoke && now - pace.asked_at < kBreath) {
    // Bounded even while barriers keep arriving: those of one breath are asked for together.
    std::this_thread::sleep_until(pace.asked_at + kBreath);
  }
  if (woken == Woken::kPoke && unhurried) pace.interval = shortest;  // of what has just come, it is known the sooner
  pace.asked_at = Clock::now();
  const bool moved = Round(wanted);
  pace.blocks = moved || Poked() || Clock::now() - pace.asked_at > kWaitSlice / 2;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    down = inside_.reach.down();
  }
  if (down) {
    pace.retry = std::min<Duration>(pace.retry * 2, kLongestRetry);
    pace.interval = shortest;
    return;
  }
  pace.retry = kFirstRetry;
  const bool steady = (moved && !unhurried) || own_pace > Duration::zero();
  const double growth = unhurried ? kUnhurried : 2;
  const auto longer = std::chrono::duration_cast<Duration>(std::max(pace.interval, shortest) * growth);
  pace.interval = steady ? shortest : std::min(longer, shortest * kSafetyNet);
}

// Sleeps until the time is over, the server pushed, or somebody new waits.
Asker::Woken Asker::Sleep(Duration duration) {
  pollfd heard[2] = {{wake_.load(std::memory_order_relaxed), POLLIN, 0}, {-1, POLLIN, 0}};
  if (watch_) heard[1].fd = watch_->Descriptor();
  duration = std::max(duration, Duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const timespec limit{static_cast<std::time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
  const int ready = ppoll(heard, 2, &limit, nullptr);
  const bool poked = ready > 0 && heard[0].revents != 0;
  if (poked) {
    std::uint64_t count = 0;
    if (read(heard[0].fd, &count, sizeof count) < 0) count = 0;
    poked_.store(false, std::memory_order_release);  // only now: a poke in between is seen by the question that follows
  }
  if (watch_ && ready > 0 && heard[1].revents != 0) {
    const Result<void> pumped = watch_->Pump();
    if (!pumped.ok()) Failed(pumped.error().Words(), Clock::now());  // a broken channel: the server is asked anew
  }
  if (pushed_.exchange(false, std::memory_order_acq_rel)) return Woken::kPush;
  return poked ? Woken::kPoke : Woken::kTime;
}

// One question; true if the server has moved. One whose answer was overtaken is asked again, once (BAR-33).
bool Asker::Round(bool wanted) {
  std::optional<bool> moved = Question(wanted);
  if (!moved) moved = Question(wanted);
  return moved.value_or(false);
}

// One question; nothing if the data were replaced while it was asked: the answer may speak of those before.
std::optional<bool> Asker::Question(bool wanted) {
  const TimePoint asked_at = Clock::now();
  std::vector<WriteId> ids;
  bool looked_at = false;
  bool hurried = false;
  std::string epoch;
  std::uint64_t applied = 0;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    ids = inside_.waiters.Choose(asked_at, inside_.wanted_at);
    looked_at = inside_.waiters.looked_at();
    hurried = inside_.hurried;
    epoch = inside_.proofs.epoch();
    const auto found = inside_.proofs.applied().find(epoch);
    applied = found == inside_.proofs.applied().end() ? 0 : found->second;
  }
  const Answers answers = Ask(ids, looked_at, hurried);
  if (answers.kind() == Answers::Kind::kUnreachable) {
    if (const std::string fault = OwnFault(); !fault.empty()) {  // which says nothing of the server
      Refused(fault + " (" + answers.words() + ")", UnprovenKind::kOwnFault);
      return false;
    }
    Failed(answers.words(), asked_at);
    return false;
  }
  if (answers.kind() == Answers::Kind::kRefused) {
    Refused(answers.words(), answers.why());
    return false;
  }
  if (answers.answers().size() != ids.size()) {
    Refused(std::to_string(answers.answers().size()) + " answers to " + std::to_string(ids.size()) + " questions");
    return false;
  }
  if (inside_.shim->OwnPace() == Duration::zero()) {  // such a shim counts its questions by itself
    telemetry::Request(inside_.store_name, wanted ? "wait" : "probe");
  }
  Groups released;
  bool moved = false;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    const TimePoint now = Clock::now();
    const Proofs& proofs = inside_.proofs;
    inside_.reach.Answered();
    inside_.proofs.Answered(now);
    question_time_ = std::max<Duration>(now - asked_at, question_time_ / 2);
    if (proofs.Overtaken()) return std::nullopt;
    const std::size_t waited = inside_.waiters.live();
    released = inside_.waiters.Answer(ids, answers.answers(), proofs.ProvedNow(), now,
                                      {proofs.asked_at(), proofs.generation()}, proofs.epoch(),
                                      inside_.LagOf(proofs.epoch(), now));
    moved = inside_.waiters.live() < waited || HasMoved(epoch, applied);  // many objects are asked for bit by bit
  }
  ReleaseAll(released);
  return moved;
}

bool Asker::HasMoved(const std::string& epoch, std::uint64_t applied) const {
  if (inside_.proofs.epoch() != epoch) return true;
  const auto found = inside_.proofs.applied().find(epoch);
  return found != inside_.proofs.applied().end() && found->second != applied;
}

Answers Asker::Ask(const std::vector<WriteId>& ids, bool looked_at, bool hurried) {
  return Asked([&]() -> Answers {
    Reconnect();
    if (!watch_ && watchable_ && hurried && inside_.shim->capabilities().push) {
      Result<std::unique_ptr<Watch>> opened = inside_.shim->OpenWatch(server_, [this] { OnChange(); });
      if (!opened.ok()) return Answers::Unreachable(opened.error().Words());
      watch_ = std::move(opened).value();
      if (!watch_) {
        watchable_ = false;
        logs::Info("AP515", "no-push " + inside_.address, inside_.address + " cannot push, so it is polled");
      }
    }
    server_.BeginQuestion();
    if (!ids.empty() && inside_.shim->capabilities().blocking_wait && !looked_at) {
      return inside_.shim->Wait(ids, server_, kWaitSlice);
    }
    return inside_.shim->Visible(ids, server_);
  });
}

// The address may come to lead to another server, while an open connection stays at the old one (BAR-55). What was seen
// by a tap is seen once.
void Asker::Reconnect() {
  const TimePoint now = Clock::now();
  const bool is_tap = inside_.shim->capabilities().tap;
  // Several servers have to stand together.
  const Duration life = std::max<Duration>(InForce()->reconnect, 10 * question_time_);
  if (connected_at_ && !is_tap && now - *connected_at_ >= life) CloseChannel();
  if (!connected_at_) connected_at_ = now;
}

// The server is there and does not answer the question: whoever waits is told so at once (BAR-13).
void Asker::Refused(const std::string& words, UnprovenKind kind) {
  CloseChannel();
  Groups released;
  {
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    inside_.reach.Answered();  // it answers, in its way: it is asked at the pace of a poll, not in a loop
    released = inside_.waiters.AnswerAll(Visibility::Unproven(words, kind));
    inside_.waiters.ForgetProbes();
  }
  ReleaseAll(released);
}

// The server did not answer: proofs go, and after `replica_out_after` it is left out of every pass.
void Asker::Failed(const std::string& words, TimePoint asked_at) {
  CloseChannel();
  telemetry::Request(inside_.store_name, "probe");
  Groups released;
  {
    const TimePoint now = Clock::now();
    const std::lock_guard<std::mutex> lock(inside_.mutex);
    inside_.reach.Failed(asked_at, now, words.empty() ? "it cannot be reached" : words);
    if (inside_.reach.IsOut(now)) released = inside_.waiters.LeaveOut();
  }
  ReleaseAll(released);
}

void Asker::CloseChannel() {
  watch_.reset();
  inside_.shim->Close(server_);
  connected_at_.reset();
  server_.Reset();
}

}  // namespace antipode
