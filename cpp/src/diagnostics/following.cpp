#include "diagnostics/following.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "base/fork.h"
#include "diagnostics/record.h"
#include "engine/completions.h"
#include "engine/threads.h"
#include "store/server.h"

namespace antipode::following {
namespace {

std::atomic<Duration::rep> follow_for{Duration(std::chrono::seconds(30)).count()};
std::atomic<int> most_followed{kMostFollowed};
std::atomic<int> followed{0};
std::atomic<int> unanswered{0};

// One that counts until it is given back.
class FollowCount {
 public:
  explicit FollowCount(std::atomic<int>& count) noexcept : count_(&count) {}
  FollowCount(const FollowCount&) = delete;
  FollowCount& operator=(const FollowCount&) = delete;
  ~FollowCount() { GiveBack(); }

  // Takes one; false where there are as many as may be.
  bool Take(int most) noexcept {
    int now = count_->load();
    while (now < most) {
      if (count_->compare_exchange_weak(now, now + 1)) return is_taken_ = true;
    }
    return false;
  }
  void GiveBack() noexcept {
    if (std::exchange(is_taken_, false)) count_->fetch_sub(1);
  }

 private:
  std::atomic<int>* count_;
  bool is_taken_ = false;
};

// The writes of one barrier or read. What it does is done by the thread of `Completions`, one after the other.
class FollowedWrites : public std::enable_shared_from_this<FollowedWrites> {
 public:
  explicit FollowedWrites(Over over) : over_(std::move(over)) {}

  // Null where too many are followed.
  std::shared_ptr<WaitGroup> Start(const Wanted& wanted) {
    // What is followed is the parent's.
    static const bool once = (OnForkInChild([] { followed = unanswered = 0; }), true);
    static_cast<void>(once);
    if (!place_.Take(most_followed.load())) return nullptr;
    question_.Take(kMostFollowed);
    const auto self = shared_from_this();
    const auto looked = std::make_shared<Step>(self, &FollowedWrites::Looked);
    end_ = std::make_shared<Step>(self, &FollowedWrites::End);
    look_ = std::make_shared<WaitGroup>(Duration::zero(), Calls(looked));
    look_->follows = true;
    const auto look = look_;  // who is ended meanwhile lets go of it
    writes_.reserve(wanted.size());
    for (const auto& [server, write_id] : wanted) {
      writes_.emplace_back(server, write_id);
      look->Add(write_id, server);
    }
    Completions::Instance().At(look->since + FollowFor(), end_);  // first: what is parked ends
    for (PendingWait& need : look->needs) need.server->impl().Park(need);
    if (!look->Parked()) threads::Insist([&] { Completions::Instance().Now(looked); });
    return look;
  }

  // It could not begin, and tells nobody.
  void Drop() noexcept {
    ended_ = true;
    Clear();
  }

 private:
  // One of the two things that are done once.
  class Step : public Completion {
   public:
    Step(std::shared_ptr<FollowedWrites> of, void (FollowedWrites::*what)()) : of_(std::move(of)), what_(what) {}
    void Run(bool /*due*/) override {
      const std::shared_ptr<FollowedWrites> of = of_;  // what it holds goes here, and not with the alarm
      ((*of).*what_)();
      of_.reset();  // not before: where there was no memory it is done again
    }

   private:
    std::shared_ptr<FollowedWrites> of_;
    void (FollowedWrites::*const what_)();
  };

  static std::function<void()> Calls(const std::shared_ptr<Step>& step) {
    return [step] { Completions::Instance().Now(step); };
  }

  // Every server has answered the first look: what was not there is parked.
  void Looked() {
    if (ended_) return;
    park_ = Missing();
    for (PendingWait& need : park_->needs) need.server->impl().Park(need);
    question_.GiveBack();
    if (!park_->Parked()) End();
  }

  // The needs of what the first look did not show.
  std::shared_ptr<WaitGroup> Missing() {
    const auto missing = std::make_shared<WaitGroup>(FollowFor(), Calls(end_));
    missing->follows = true;
    parked_.clear();
    for (std::size_t place = 0; place < writes_.size(); ++place) {
      Write& write = writes_[place];
      TakeFirst(write, look_->needs[place]);
      if (write.first && write.first->verdict == Verdict::kNotYet) {
        missing->Add(write.write_id, write.server);
        parked_.push_back(place);
      }
    }
    return missing;
  }

  void TakeFirst(Write& write, const PendingWait& need) {
    write.left_out = need.left_out;
    if (need.left_out) return;
    write.first = need.answer;  // nothing: nobody answered it before it was given up
    write.Took(write.first, need.seen.value_or(look_->since) - look_->since);
    if (need.is_position) write.at = write.server->AppliedIn(need.epoch);
    if (write.at && *write.at >= need.counter) write.at.reset();  // it has moved since
  }

  // Everything is seen, or it has been followed for so long.
  void End() noexcept {
    if (ended_) return;
    ended_ = true;
    for (const auto& group : {look_, park_}) {
      if (!group) continue;
      group->cancelled = true;  // nobody goes on asking for it
      group->GiveUp();
    }
    records::Try([this] {
      TakeLast();
      over_(writes_);
    });
    Clear();
  }

  void TakeLast() {
    for (std::size_t place = 0; !park_ && place < writes_.size(); ++place) {
      TakeFirst(writes_[place], look_->needs[place]);
    }
    for (std::size_t number = 0; park_ && number < parked_.size(); ++number) {
      const PendingWait& need = park_->needs[number];
      Write& write = writes_[parked_[number]];
      if (need.answer) write.Took(need.answer, need.seen.value_or(look_->since) - look_->since);
    }
  }

  void Clear() noexcept {
    over_ = nullptr;
    writes_.clear();
    look_.reset();
    park_.reset();
    end_.reset();
    question_.GiveBack();
    place_.GiveBack();
  }

  FollowCount place_{followed};
  FollowCount question_{unanswered};
  Over over_;
  Writes writes_;
  std::vector<std::size_t> parked_;
  std::shared_ptr<WaitGroup> look_;
  std::shared_ptr<WaitGroup> park_;
  std::shared_ptr<Step> end_;
  bool ended_ = false;
};

}  // namespace

Duration FollowFor() noexcept { return Duration(follow_for.load()); }

void SetFollowFor(Duration duration) noexcept { follow_for.store(duration.count()); }

void SetMostFollowed(int most) noexcept { most_followed.store(most); }

int Followed() noexcept { return followed.load(); }

int Unanswered() noexcept { return unanswered.load(); }

bool Write::Late() const {
  if (!first || first->verdict != Verdict::kNotYet || first->unanswered) return false;
  return !first->unknown_epoch || (answer && answer->verdict == Verdict::kVisible);
}

void Write::Took(const std::optional<Visibility>& now, Duration after) {
  answer = now;
  if (now && now->verdict == Verdict::kVisible) visible_after = std::max(after, Duration::zero());
}

std::shared_ptr<WaitGroup> Follow(const Wanted& wanted, Over over) {
  std::shared_ptr<FollowedWrites> following;
  try {
    following = std::make_shared<FollowedWrites>(std::move(over));
    return following->Start(wanted);
  } catch (const std::bad_alloc&) {  // it is not followed (BAR-61)
    if (following) following->Drop();
    return nullptr;
  }
}

std::optional<double> VisibleAfter(const std::vector<const Write*>& writes) {
  Duration last{};
  for (const Write* write : writes) {
    if (!write->visible_after) return std::nullopt;
    last = std::max<Duration>(last, *write->visible_after);
  }
  if (writes.empty()) return std::nullopt;
  return Seconds(last);
}

}  // namespace antipode::following
