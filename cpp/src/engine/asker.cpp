#include "engine/asker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "antipode/logs.h"
#include "antipode/store.h"
#include "base/observers.h"
#include "engine/threads.h"
#include "store/store_impl.h"

namespace antipode {
namespace {

using std::chrono::milliseconds;

constexpr Duration kWaitSlice = milliseconds(100);
constexpr Duration kBreath = milliseconds(1);
constexpr Duration kNap = std::chrono::seconds(1);

thread_local const Asker* asking = nullptr;

// A client's exception is the server's own answer to the question.
template <class Question>
Answers AnswersTo(const Question& question) {
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

// Why this process cannot open a connection; empty where it can. The words of a failure may say so, and a fault that is
// over says no more.
std::string OwnFault(const std::string& words) {
  for (const int number : {EMFILE, ENFILE, ENOMEM, ENOBUFS}) {
    const std::string lack = std::generic_category().message(number);
    if (words.find(lack) != std::string::npos) return "this process can open no connection: " + lack;
  }
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
  thread_ = threads::Start("antipode", [this] { Run(); });
  running_ = true;
}

void Asker::Poke() noexcept {
  called_.store(true, std::memory_order_release);  // first: the thread may be awake
  Wake();
}

void Asker::Wake() noexcept {
  if (poked_.exchange(true, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  const int wake = wake_.load(std::memory_order_acquire);
  if (wake >= 0 && write(wake, &one, sizeof one) < 0) {
    return;  // its counter is full: it is readable already
  }
}

void Asker::OnChange() noexcept {
  state_.growth.NotePush();
  pushed_.store(true, std::memory_order_release);
  if (asking != this) Wake();
}

void Asker::End() {
  if (asking == this) return;
  std::unique_ptr<std::thread> thread;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    thread = std::move(thread_);
    ending_.store(true, std::memory_order_release);
  }
  if (thread) {
    Poke();
    thread->join();
  }
  renewal_.Join();
}

void Asker::AfterFork() {
  static_cast<void>(thread_.release());  // the thread is the parent's; its handle must not be touched
  static_cast<void>(watch_.release());   // likewise what it talks by
  server_.session.reset();
  renewal_.AfterFork();
  running_ = false;
  const int wake = wake_.exchange(-1);
  if (wake >= 0) close(wake);
  poked_.store(false);
  called_.store(false);
  pushed_.store(false);
  ending_.store(false);
  watchable_ = true;
}

void Asker::Run() {
  asking = this;
  Pace pace(Clock::now() - kNap);
  while (true) {
    try {
      if (Idle()) {
        CloseChannel();  // not under the lock: a shim's close may wait for who is calling back
        if (Ended()) return;
      }
      Turn(pace);
    } catch (const std::exception& error) {  // no silence of the server, and the thread goes on (BAR-61)
      TellFault(error.what());
      std::this_thread::sleep_for(kFirstRetry);
    }
  }
}

// Tells who waits here that this process is in trouble.
void Asker::TellFault(const char* words) noexcept {
  try {
    logs::Say("AP209", LogLevel::kWarning, "the thread that asks " + server_.address() + " failed, and goes on", words);
    Refused(words, UnprovenKind::kOwnFault);
  } catch (const std::exception&) {  // even that takes memory
    server_.Reset();
  }
}

bool Asker::Idle() const {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  return NobodyWaits();
}

bool Asker::NobodyWaits() const {
  return ending_.load(std::memory_order_acquire) ||
         (state_.waiters.live() == 0 && Since(state_.wanted_at, Clock::now()) > Linger());
}

// Ends the thread's work, unless somebody has come; under the lock, so that a need parked now begins another one.
bool Asker::Ended() {
  Groups released;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (!NobodyWaits()) return false;
    released = state_.waiters.AnswerAll(Visibility::NotYet("Antipode was shut down"));
    running_ = false;  // behind what may fail: who begins another thread waits for the end of this one
    state_.hurried = false;
    state_.waiters.ForgetProbes();
    state_.waiters.ForgetUnknown();
  }
  EndAll(released);
  return true;
}

// Wakes the barriers that wait here where this server may have left the store: they name the servers anew (BAR-65).
void Asker::LookForLeave() {
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.waiters.live() == 0 || state_.waiters.only_follows()) return;
  }
  const std::uint64_t now = state_.store.impl().LookAgain();  // first: what changes meanwhile shows
  if (now == known_under_) return;
  for (const bool own : {false, true}) {
    if (!state_.store.impl().HasLost(server_, own)) continue;
    Groups changing;
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      changing = state_.waiters.Changing(own);
    }
    EndOutdated(changing);
  }
  known_under_ = now;
}

// Sleeps until there is a reason to ask the server, and asks it once.
void Asker::Turn(Pace& pace) {
  LookForLeave();
  const Duration own_pace = state_.shim->OwnPace();
  const Duration shortest = std::max<Duration>({InForce()->poll, own_pace, milliseconds(1)});
  TimePoint due = Due(pace, shortest);
  const WakeReason woken = Sleep(std::min(due - Clock::now(), kNap));
  if (ending_.load(std::memory_order_acquire)) return;
  bool wanted = false;
  bool unhurried = false;
  bool looked_at = false;
  bool down = false;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    down = state_.reach.down();
    wanted = state_.waiters.wanted();
    unhurried = state_.waiters.only_follows();
    looked_at = state_.waiters.looked_at();
  }
  if (woken.is_pushed && wanted && (looked_at || !unhurried)) {  // else whoever comes next asks anew
    pace.NoteNews();
    due = std::min(due, Due(pace, shortest));
  }
  const TimePoint now = Clock::now();
  if (now < due && (!woken.is_called || down)) return;
  if (woken.is_called && now - pace.asked_at() < kBreath) {
    // Bounded even while barriers keep arriving: those of one breath are asked for together.
    std::this_thread::sleep_until(pace.asked_at() + kBreath);
  }
  if (woken.is_called && unhurried) pace.Hurry();
  pace.Begin(Clock::now(), now >= due && !woken.is_called);
  called_.store(false, std::memory_order_release);  // whoever has called by now is among those who are asked for
  const bool moved = Round(wanted);
  pace.blocks = moved || Poked() || Clock::now() - pace.asked_at() > kWaitSlice / 2;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    down = state_.reach.down();
  }
  pace.End(shortest, down, (moved && !unhurried) || own_pace > Duration::zero(), unhurried);
}

// When the server is to be asked, where nobody new comes before.
TimePoint Asker::Due(const Pace& pace, Duration shortest) {
  const Duration ttl = InForce()->free_path_ttl;
  const std::lock_guard<std::mutex> lock(state_.mutex);
  const Proofs& proofs = state_.proofs;
  if (state_.reach.down()) return state_.reach.failed_at() + pace.retry();
  if (called_.load(std::memory_order_acquire)) return Clock::now();
  const bool wanted = state_.waiters.wanted();
  if (wanted && pace.blocks && state_.shim->capabilities().blocking_wait) {
    return pace.asked_at() + kBreath;  // the shim itself waits
  }
  if (wanted) {
    const std::optional<std::uint64_t> nearest = state_.waiters.Nearest(proofs.epoch());
    if (!nearest) return pace.Due(shortest, std::nullopt, false);
    return pace.Due(shortest, state_.growth.ExpectedAt(proofs.instance(), proofs.epoch(), *nearest),
                    state_.growth.IsPushedTo(*nearest));
  }
  if (watch_ && ttl > Duration::zero()) return proofs.answered_at() + std::max<Duration>(ttl / 2, shortest);
  return Clock::now() + kNap;
}

// Sleeps until the time is over, the server pushed, or somebody new waits.
Asker::WakeReason Asker::Sleep(Duration duration) {
  pollfd heard[2] = {{wake_.load(std::memory_order_relaxed), POLLIN, 0}, {-1, POLLIN, 0}};
  if (watch_) heard[1].fd = watch_->Descriptor();
  duration = std::max(duration, Duration::zero());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const timespec limit{static_cast<std::time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
  const int ready = ppoll(heard, 2, &limit, nullptr);
  if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
  if (ready > 0 && heard[0].revents != 0) {
    std::uint64_t count = 0;
    if (read(heard[0].fd, &count, sizeof count) < 0) count = 0;
    poked_.store(false, std::memory_order_release);  // only now: a poke in between is seen by the question that follows
  }
  if (watch_ && ready > 0 && heard[1].revents != 0) {
    const Result<void> pumped = watch_->Pump();
    if (!pumped.ok()) Unanswered(pumped.error().Words(), Clock::now());  // a broken channel: the server is asked anew
  }
  return {called_.load(std::memory_order_acquire), pushed_.exchange(false, std::memory_order_acq_rel)};
}

// One question; true if the server has moved. One whose answer was overtaken is asked again, once (BAR-33).
bool Asker::Round(bool wanted) {
  std::optional<bool> moved = Question(wanted);
  if (!moved) moved = Question(wanted);
  return moved.value_or(false);
}

// One question; nothing if the data were replaced while it was asked: the answer may speak of those before.
std::optional<bool> Asker::Question(bool wanted) {
  Reconnect();  // first: whoever comes meanwhile is asked for, and it is no silence of the server
  const TimePoint asked_at = Clock::now();
  std::vector<WriteId> ids;
  bool looked_at = false;
  bool hurried = false;
  std::string epoch;
  std::uint64_t applied = 0;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    ids = state_.waiters.Choose(asked_at, state_.wanted_at);
    looked_at = state_.waiters.looked_at();
    hurried = state_.hurried;
    epoch = state_.proofs.epoch();
    const auto found = state_.proofs.applied().find(epoch);
    applied = found == state_.proofs.applied().end() ? 0 : found->second;
  }
  const Answers answers = Ask(ids, looked_at, hurried);
  if (answers.kind() == Answers::Kind::kUnreachable) {
    Unanswered(answers.words(), asked_at);
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
  if (state_.shim->OwnPace() == Duration::zero()) {  // such a shim counts its questions by itself
    Events().ServerAsked(state_.store_name, wanted ? "wait" : "probe");
  }
  Releases releases;
  bool moved = false;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    const TimePoint now = Clock::now();
    const Proofs& proofs = state_.proofs;
    state_.reach.Answered();
    state_.proofs.Answered(now);
    renewal_.Answered(now - asked_at);
    if (proofs.Overtaken()) return std::nullopt;
    const std::size_t waited = state_.waiters.live();
    state_.waiters.Answer(ids, answers.answers(), proofs.ProvedNow(), now, {proofs.asked_at(), proofs.generation()},
                           proofs.epoch(), state_.LagOf(proofs.epoch(), now), releases.groups);
    moved = state_.waiters.live() < waited || HasMoved(epoch, applied);  // many objects are asked for bit by bit
  }
  return moved;
}

bool Asker::HasMoved(const std::string& epoch, std::uint64_t applied) const {
  if (state_.proofs.epoch() != epoch) return true;
  const auto found = state_.proofs.applied().find(epoch);
  return found != state_.proofs.applied().end() && found->second != applied;
}

Answers Asker::Ask(const std::vector<WriteId>& ids, bool looked_at, bool hurried) {
  return AnswersTo([&]() -> Answers {
    if (!watch_ && watchable_ && hurried && state_.shim->capabilities().push) {
      Result<std::unique_ptr<Watch>> opened = state_.shim->OpenWatch(server_, [this] { OnChange(); });
      if (!opened.ok()) return Answers::Unreachable(opened.error().Words());
      watch_ = std::move(opened).value();
      if (!watch_) {
        watchable_ = false;
        logs::Info("AP515", "no-push " + server_.address(), server_.address() + " cannot push, so it is polled");
      }
    }
    server_.BeginQuestion();
    if (!ids.empty() && state_.shim->capabilities().blocking_wait && !looked_at) {
      return state_.shim->Wait(ids, server_, kWaitSlice);
    }
    return state_.shim->Visible(ids, server_);
  });
}

// The address may come to lead to another server, while an open connection stays at the old one (BAR-55). What was seen
// by a tap is seen once.
void Asker::Reconnect() {
  if (state_.shim->capabilities().tap) return;
  if (std::optional<std::any> next = renewal_.Next()) Replace(*std::move(next));
}

// The server is there and does not answer the question: whoever waits is told so at once (BAR-13).
void Asker::Refused(const std::string& words, UnprovenKind kind) {
  CloseChannel();
  Groups released;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    state_.reach.Answered();  // it answers, in its way: it is asked at the pace of a poll, not in a loop
    released = state_.waiters.AnswerAll(Visibility::Unproven(words, kind));
    state_.waiters.ForgetProbes();
  }
  ReleaseAll(released);
}

// What it means that there is no answer: the server's silence, or this process' own fault, which says nothing of it.
void Asker::Unanswered(const std::string& words, TimePoint asked_at) {
  if (const std::string fault = OwnFault(words); !fault.empty()) {
    Refused(fault + " (" + words + ")", UnprovenKind::kOwnFault);
  } else {
    Failed(words, asked_at);
  }
}

// The server did not answer: proofs go, and after `replica_out_after` it is left out of every pass.
void Asker::Failed(const std::string& words, TimePoint asked_at) {
  CloseChannel();
  Events().ServerAsked(state_.store_name, "probe");
  Groups released;
  {
    const TimePoint now = Clock::now();
    const std::lock_guard<std::mutex> lock(state_.mutex);
    state_.reach.Failed(asked_at, now, words.empty() ? "it cannot be reached" : words);
    if (state_.reach.IsOut(now)) released = state_.waiters.LeaveOut();
  }
  ReleaseAll(released);
}

void Asker::CloseChannel() {
  renewal_.End();
  Replace({});
}

// Closes the channel and the connection, and drops what they proved; this session takes its place, where there is one.
void Asker::Replace(std::any session) {
  watch_.reset();
  state_.shim->Close(server_);
  if (session.has_value()) server_.session = std::move(session);
  server_.Reset();
}

}  // namespace antipode
