#include "engine/following.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>

#include "antipode/logs.h"
#include "engine/completions.h"
#include "fork.h"

namespace antipode::following {
namespace {

std::atomic<Duration::rep> follow_for{Duration(std::chrono::seconds(30)).count()};
std::atomic<int> most_followed{kMostFollowed};
std::atomic<int> followed{0};
std::atomic<int> unanswered{0};

// Takes one of the places; false where all are taken.
bool TakePlace() {
  // What is followed is the parent's.
  static const bool once = (OnForkInChild([] { followed = unanswered = 0; }), true);
  static_cast<void>(once);
  int now = followed.load();
  while (now < most_followed.load()) {
    if (followed.compare_exchange_weak(now, now + 1)) return true;
  }
  return false;
}

// The writes of one barrier or read. What it does is done by the thread of `Completions`, one after the other.
class Following : public std::enable_shared_from_this<Following> {
 public:
  Following(Over over, Missed missed) : over_(std::move(over)), missed_(std::move(missed)) {}

  std::shared_ptr<Group> Start(const Wanted& wanted) {
    ++unanswered;
    const auto self = shared_from_this();
    const auto looked = std::make_shared<Step>(self, &Following::Looked);
    end_ = std::make_shared<Step>(self, &Following::End);
    look_ = std::make_shared<Group>(Duration::zero(), Calls(looked));
    look_->follows = true;
    const auto look = look_;  // who is ended meanwhile lets go of it
    writes_.reserve(wanted.size());
    for (const auto& [server, write_id] : wanted) {
      writes_.emplace_back(server, write_id);
      look->Add(write_id, server);
    }
    for (Need& need : look->needs) need.server->Park(need);
    Completions::Instance().At(look->since + FollowFor(), end_);
    if (!look->Parked()) Completions::Instance().Now(looked);
    return look;
  }

 private:
  // One of the two things that are done once.
  class Step : public Completion {
   public:
    Step(std::shared_ptr<Following> of, void (Following::*what)()) : of_(std::move(of)), what_(what) {}
    void Run(bool /*due*/) override {
      const std::shared_ptr<Following> of = std::move(of_);  // what it holds goes here, and not with the alarm
      ((*of).*what_)();
    }

   private:
    std::shared_ptr<Following> of_;
    void (Following::*const what_)();
  };

  static std::function<void()> Calls(const std::shared_ptr<Step>& step) {
    return [step] { Completions::Instance().Now(step); };
  }

  // Every server has answered the first look: what was not there is parked.
  void Looked() {
    if (ended_) return;
    park_ = std::make_shared<Group>(FollowFor(), Calls(end_));
    park_->follows = true;
    for (std::size_t place = 0; place < writes_.size(); ++place) {
      const Need& need = look_->needs[place];
      Write& write = writes_[place];
      TakeFirst(write, need);
      if (write.first && write.first->verdict == Verdict::kNotYet) {
        park_->Add(write.write_id, write.server);
        parked_.push_back(place);
      }
    }
    const auto was_missing = [](const Write& write) { return write.WasMissing(); };
    if (missed_ && std::any_of(writes_.begin(), writes_.end(), was_missing)) {
      Tell([this] { missed_(); });  // before anybody asks again whether all are there
    }
    for (Need& need : park_->needs) need.server->Park(need);
    --unanswered;
    if (!park_->Parked()) End();
  }

  // Never an exception into the engine's thread.
  template <typename What>
  static void Tell(const What& what) {
    try {
      what();
    } catch (const std::exception& error) {
      logs::Say("AP601", LogLevel::kError, std::string("a dry-run record could not be made: ") + error.what());
    }
  }

  void TakeFirst(Write& write, const Need& need) {
    write.left_out = need.left_out;
    if (need.left_out) return;
    write.first = need.answer;  // nothing: nobody answered it before it was given up
    write.Took(write.first, need.seen.value_or(look_->since) - look_->since);
    if (need.is_position) write.at = write.server->AppliedIn(need.epoch);
    if (write.at && *write.at >= need.counter) write.at.reset();  // it has moved since
  }

  // Everything is seen, or it has been followed for so long.
  void End() {
    if (ended_) return;
    ended_ = true;
    for (const auto& group : {look_, park_}) {
      if (!group) continue;
      group->cancelled = true;  // nobody goes on asking for it
      group->GiveUp();
    }
    if (!park_) {
      --unanswered;
      for (std::size_t place = 0; place < writes_.size(); ++place) TakeFirst(writes_[place], look_->needs[place]);
    }
    for (std::size_t number = 0; number < parked_.size(); ++number) {
      const Need& need = park_->needs[number];
      Write& write = writes_[parked_[number]];
      if (need.answer) write.Took(need.answer, need.seen.value_or(look_->since) - look_->since);
    }
    Tell([this] { over_(writes_); });
    over_ = nullptr;
    missed_ = nullptr;
    writes_.clear();
    look_.reset();
    park_.reset();
    end_.reset();
    followed.fetch_sub(1);
  }

  Over over_;
  Missed missed_;
  Writes writes_;
  std::vector<std::size_t> parked_;
  std::shared_ptr<Group> look_;
  std::shared_ptr<Group> park_;
  std::shared_ptr<Step> end_;
  bool ended_ = false;
};

}  // namespace

Duration FollowFor() noexcept { return Duration(follow_for.load()); }

void SetFollowFor(Duration duration) noexcept { follow_for.store(duration.count()); }

void SetMostFollowed(int most) noexcept { most_followed.store(most); }

int Followed() noexcept { return followed.load(); }

int Unanswered() noexcept { return unanswered.load(); }

bool Write::WasMissing() const { return first && first->verdict == Verdict::kNotYet && !first->unanswered; }

bool Write::Late() const {
  if (!WasMissing()) return false;
  return !first->unknown_epoch || (answer && answer->verdict == Verdict::kVisible);
}

void Write::Took(const std::optional<Visibility>& now, Duration after) {
  answer = now;
  if (now && now->verdict == Verdict::kVisible) visible_after = std::max(after, Duration::zero());
}

std::shared_ptr<Group> Follow(const Wanted& wanted, Over over, Missed missed) {
  if (!TakePlace()) return nullptr;
  return std::make_shared<Following>(std::move(over), std::move(missed))->Start(wanted);
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
