#include "engine/renewal.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/in_force.h"
#include "engine/renewal_age.h"
#include "engine/threads.h"

namespace antipode {
namespace {

constexpr int kQuestions = 10;  // a connection lives for so many at least: several servers are to stand together
constexpr int kLead = 5;        // the next one is begun in the last fifth of its time, or sooner where it takes longer

}  // namespace

/// A connection that a thread opens beside the one that answers.
class Renewal::Opening {
 public:
  TimePoint began_at() const noexcept { return began_at_; }

  /// How long it took, once it is over.
  Duration time() const noexcept { return time_; }

  bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }

  void Start(const Server& server, Shim& shim) {
    thread_ = threads::Start("antipode-next", [this, &server, &shim] { Run(server, shim); });
  }

  /// Waits so long at most until it is over.
  void Wait(Duration patience) {
    std::unique_lock<std::mutex> lock(mutex_);
    over_.wait_for(lock, patience, [this] { return is_over(); });
  }

  /// What was opened, once; empty where it is not over, or failed.
  std::any Take() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(session_, std::any());
  }

  /// Has it closed, as soon as it is over.
  void GiveUp() noexcept {
    std::any unwanted;
    const std::lock_guard<std::mutex> lock(mutex_);
    is_given_up_ = true;
    unwanted.swap(session_);
  }

  /// No thread is to be had.
  void Fail() noexcept { is_over_.store(true, std::memory_order_release); }

  void Join() noexcept { thread_->join(); }

 private:
  void Run(const Server& server, Shim& shim) noexcept {
    std::any session;
    try {
      session = shim.Renew(server);
    } catch (...) {  // the connection that answers does so still
      session.reset();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_given_up_) session_.swap(session);
    time_ = Clock::now() - began_at_;
    is_over_.store(true, std::memory_order_release);
    over_.notify_all();
  }

  const TimePoint began_at_ = Clock::now();
  std::unique_ptr<std::thread> thread_;
  std::mutex mutex_;
  std::condition_variable over_;
  std::any session_;
  Duration time_{};
  bool is_given_up_ = false;
  std::atomic<bool> is_over_{false};
};

Renewal::~Renewal() = default;

std::optional<std::any> Renewal::Next() {
  if (!made_at_) {
    made_at_ = Clock::now();
    is_new_ = true;
    return std::nullopt;
  }
  const Duration life = std::max<Duration>(InForce()->reconnect, kQuestions * question_time_);
  Duration left = Left(life);
  if (!next_ && left > Duration::zero() && left <= std::min(life / 2, std::max(life / kLead, 2 * opening_time_))) {
    next_ = Begin();
    left = Left(life);  // a thread may begin late
  }
  std::any session;
  if (next_) {
    // It is further than a new one.
    if (left <= Duration::zero()) next_->Wait(std::max<Duration>(server_.AskTimeout(), 2 * opening_time_));
    session = next_->Take();
  }
  if (session.has_value()) {
    made_at_ = next_->began_at();
    opening_time_ = next_->time();
    is_new_ = false;
    next_.reset();
    left = Left(life);  // it may have stood there for long
    if (left > Duration::zero()) return session;
  }
  if (left > Duration::zero()) return std::nullopt;
  End();
  made_at_ = Clock::now();
  is_new_ = true;
  return std::any();
}

void Renewal::Answered(Duration time) noexcept {
  question_time_ = std::max(time, question_time_ / 2);
  if (!std::exchange(is_new_, false)) return;
  opening_time_ = time;
}

void Renewal::End() noexcept {
  made_at_.reset();
  if (!next_) return;
  next_->GiveUp();
  next_.reset();
}

void Renewal::Join() noexcept {
  std::vector<OpeningPtr> begun;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    begun.swap(begun_);
  }
  for (const OpeningPtr& each : begun) each->Join();
}

void Renewal::AfterFork() {
  // Their threads and locks are the parent's, and must not be touched.
  new OpeningPtr(std::move(next_));                // NOLINT(cppcoreguidelines-owning-memory): left on purpose
  new std::vector<OpeningPtr>(std::move(begun_));  // NOLINT(cppcoreguidelines-owning-memory): likewise
  begun_.clear();
  made_at_.reset();
}

Duration Renewal::Left(Duration life) const {
  return *made_at_ + life - Clock::now() - renewal::more_age.load(std::memory_order_relaxed);
}

// Null where none is to be opened; one that failed where no thread is to be had: then the one that is there answers to
// its end, and none is opened beside it.
Renewal::OpeningPtr Renewal::Begin() {
  if (!state_.shim->Renews() || !threads::MayStart()) return nullptr;
  OpeningPtr opening;
  try {
    JoinThoseThatAreOver();
    opening = std::make_shared<Opening>();
    const std::lock_guard<std::mutex> lock(state_.mutex);
    begun_.reserve(begun_.size() + 1);  // first: a thread that runs is to be joined
    opening->Start(server_, *state_.shim);
    begun_.push_back(opening);
  } catch (const std::exception&) {
    if (opening != nullptr) opening->Fail();
  }
  return opening;
}

void Renewal::JoinThoseThatAreOver() {
  std::vector<OpeningPtr> over;
  {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    const auto first = std::partition(begun_.begin(), begun_.end(), [](const auto& each) { return !each->is_over(); });
    over.assign(first, begun_.end());
    begun_.erase(first, begun_.end());
  }
  for (const OpeningPtr& each : over) each->Join();
}

}  // namespace antipode
