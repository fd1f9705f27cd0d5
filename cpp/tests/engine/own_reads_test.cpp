// Reads in dry-run of which nobody knows what came: three reads of the shim's own are compared (spec REC-22).
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "engine/followed_reads_test.h"
#include "engine/repeats.h"

namespace antipode::testing {
namespace {

using Result = std::optional<std::string>;

// What the shim's own reads return, one after the other.
struct OwnReads {
  explicit OwnReads(std::vector<Result> returned) : results(std::move(returned)) {}

  Result Next() {
    const std::size_t number = static_cast<std::size_t>(made++);
    if (number >= results.size()) return std::nullopt;
    if (results[number] == "throws") throw std::runtime_error("gone");
    return results[number];
  }
  FollowedRead::Came Came() {
    return {nullptr, [this] { return Next(); }, {}};
  }

  const std::vector<Result> results;
  std::atomic<int> made{0};
};

class OwnReadsTest : public FollowedReadsTest {
 protected:
  // A read whose server has the write once the first of these reads was made.
  Json Follow(OwnReads& reads) {
    const auto store = MakeFakeStore("posts", {MakeFake("p", [&](Span<const WriteId> ids, Server&) {
      return Answers(std::vector(ids.size(), reads.made > 0 ? Visibility::Visible() : Visibility::NotYet()));
    })});
    const Scope scope(Lineage(At("posts", "e", 1)));
    const auto followed = Begin(store);
    EXPECT_NE(followed, nullptr);
    followed->Over(store->Servers().front(), reads.Came());
    return Finding();
  }
};

// REC-22: the last two are equal, and the first is not.
TEST_F(OwnReadsTest, IsStaleWhereItWasOtherwiseBefore) {
  OwnReads reads({"private-old", "private-new", "private-new"});
  const Json record = Follow(reads);
  EXPECT_EQ(record.at("kind"), "stale");
  EXPECT_EQ(record.at("confirmed"), "repeat");
  EXPECT_EQ(reads.made, 3);
  EXPECT_EQ(record.dump().find("private"), std::string::npos);
  EXPECT_EQ(Counted("stale"), 1U);
  EXPECT_EQ(Counted("behind"), 0U);
}

// REC-22, REC-14: in every other case it is behind, and nothing goes on.
TEST_F(OwnReadsTest, IsBehindInEveryOtherCase) {
  const std::string too_long(FollowedRead::kMostOctets + 1, 'x');
  const std::vector<std::pair<std::vector<Result>, int>> cases = {
      {{"same", "same", "same"}, 2},      // the third says nothing any more
      {{"1", "2", "3"}, 3},               // it differs by itself
      {{"1", "2", "1"}, 3},
      {{std::nullopt, "new", "new"}, 1},  // each may fail
      {{"old", std::nullopt, "new"}, 2},
      {{"old", "new", std::nullopt}, 3},
      {{"throws", "new", "new"}, 1},
      {{"old", "throws", "new"}, 2},
      {{"old", "new", "throws"}, 3},
      {{too_long, "new", "new"}, 1},
      {{"old", too_long, too_long}, 2},
  };
  for (const auto& [results, made] : cases) {
    const Isolated isolated;
    std::filesystem::remove_all(folder_);
    Be(Mode::kDryRun);
    OwnReads reads(results);
    const Json record = Follow(reads);
    EXPECT_EQ(record.at("kind"), "behind") << ::testing::PrintToString(results[0]);
    EXPECT_FALSE(record.contains("confirmed"));
    EXPECT_EQ(reads.made, made) << ::testing::PrintToString(results[0]);
  }
}

// REC-14.
TEST_F(OwnReadsTest, AreNotMadeWhereTheyAreSwitchedOff) {
  SettingWords words = Words(Mode::kDryRun);
  words.repeat_reads = false;
  Set(words);
  OwnReads reads({"old", "new", "new"});
  const auto store = MakeFakeStore("posts", {MakeFake("p", Later(50ms))});
  const Scope scope(Lineage(At("posts", "e", 1)));
  Begin(store)->Over(store->Servers().front(), reads.Came());
  EXPECT_EQ(Finding().at("kind"), "behind");
  EXPECT_EQ(reads.made, 0);
}

// REC-13: what is there, or cannot be proved, is not read again.
TEST_F(OwnReadsTest, AreNotMadeWhereNothingWasMissing) {
  for (const Visibility& answer : {Visibility::Visible(), Visibility::Unproven("ended")}) {
    const Isolated isolated;
    Be(Mode::kDryRun);
    OwnReads reads({"old", "new", "new"});
    const auto store = MakeFakeStore("posts", {MakeFake("p", Always(answer))});
    const Scope scope(Lineage(At("posts", "e", 1)));
    Begin(store)->Over(store->Servers().front(), reads.Came());
    UntilNothingIsFollowed();
    EXPECT_EQ(reads.made, 0);
    EXPECT_EQ(Counted("behind") + Counted("stale"), 0U);
  }
}

// REC-22: the last two are made where all is there, and of what never comes only the first.
TEST_F(OwnReadsTest, OfWhatDoesNotComeIsOneAtMost) {
  following::SetFollowFor(200ms);
  OwnReads reads({"old", "new", "new"});
  const auto store = MakeFakeStore("posts", {MakeFake("p", [](Span<const WriteId> ids, Server&) {
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      answers.push_back(id.ordered()->epoch == "e" ? Visibility::Visible() : Visibility::NotYet());
    }
    return Answers(answers);
  })});
  const Scope scope(Lineage(std::vector<WriteId>{At("posts", "e", 1), At("posts", "f", 2)}));
  Begin(store)->Over(store->Servers().front(), reads.Came());
  EXPECT_EQ(Finding().at("kind"), "behind");
  following::SetFollowFor(30s);
  Until([] { return Repeats::Instance().Idle(); });  // the first may be under way still, and reads what is ours
  EXPECT_EQ(reads.made, 1);
}

// Holds the thread that repeats reads.
class Held {
 public:
  Held() {
    const auto begun = std::make_shared<std::promise<void>>();
    Repeats::Instance().Later([begun, free = free_.get_future().share()](bool) {
      begun->set_value();
      free.wait();
    });
    begun->get_future().wait();
  }
  ~Held() { free_.set_value(); }

 private:
  std::promise<void> free_;
};

// Until that thread has done what it had to do.
void UntilRepeatsAreDone() {
  const auto over = std::make_shared<std::promise<void>>();
  Until([&] { return Repeats::Instance().Later([over](bool) { over->set_value(); }); });
  over->get_future().wait();
}

// REC-22, REC-13: nobody waits for the thread that reads, and a first read whose turn comes too late is not made.
TEST_F(OwnReadsTest, TheFirstIsNotMadeOnceAllIsThere) {
  OwnReads reads({"new", "newer", "newer"});
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore("posts", {fake});
  {
    const Held held;
    const Scope scope(Lineage(At("posts", "e", 1)));
    Begin(store)->Over(store->Servers().front(), reads.Came());
    Until([&] { return fake->asked > 2; });
    fake->Set(Always(Visibility::Visible()));
    EXPECT_EQ(Finding().at("kind"), "behind");
  }
  UntilRepeatsAreDone();
  EXPECT_EQ(reads.made, 0);
}

// REC-15: where too many wait already, the first is dropped.
TEST_F(OwnReadsTest, WhatIsDroppedIsBehind) {
  OwnReads reads({"old", "new", "new"});
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore("posts", {fake});
  {
    const Held held;
    while (Repeats::Instance().Later([](bool) {})) continue;
    const Scope scope(Lineage(At("posts", "e", 1)));
    Begin(store)->Over(store->Servers().front(), reads.Came());
    Until([&] { return fake->asked > 2; });
  }
  UntilRepeatsAreDone();
  fake->Set(Always(Visibility::Visible()));
  EXPECT_EQ(Finding().at("kind"), "behind");
  EXPECT_EQ(reads.made, 0);
}

// REC-22: where many are behind at once, what has begun is ended, however much else would begin.
TEST_F(OwnReadsTest, WhatHasBegunIsEnded) {
  constexpr int kBegun = 10;
  constexpr int kOthers = 200;
  std::atomic<int> made{0};
  FollowedRead::Came came;
  came.repeat = [&]() -> Result { return ++made <= kBegun ? "old" : "new"; };
  FollowedRead::Came others;
  others.repeat = [] { return Result("other"); };
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore("posts", {fake});
  const Scope scope(Lineage(At("posts", "e", 1)));
  for (int number = 0; number < kBegun; ++number) Begin(store)->Over(store->Servers().front(), came);
  Until([&] { return made == kBegun; });
  UntilRepeatsAreDone();
  {
    const Held held;
    for (int number = 0; number < kOthers; ++number) Begin(store)->Over(store->Servers().front(), others);
    const int asked = fake->asked;
    Until([&] { return fake->asked > asked + 2; });
    fake->Set(Always(Visibility::Visible()));
    UntilNothingIsFollowed();
  }
  Until([&] { return Counted("stale") + Counted("behind") == kBegun + kOthers; });
  EXPECT_EQ(Counted("stale"), static_cast<std::uint64_t>(kBegun));
  UntilRepeatsAreDone();  // the last one's record comes behind its count
}

// REC-13: a read that hangs holds neither the application, nor barriers, nor what else is followed.
TEST_F(OwnReadsTest, AReadThatHangsHoldsNobody) {
  std::promise<void> free;
  std::atomic<bool> reads{false};
  FollowedRead::Came came;
  came.repeat = [&, held = free.get_future().share()]() -> Result {
    reads = true;
    held.wait();
    return "old";
  };
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore("posts", {fake});
  const Scope scope(Lineage(At("posts", "e", 1)));
  Begin(store)->Over(store->Servers().front(), came);
  Until([&] { return reads.load(); });
  Begin(store)->Over(store->Servers().front());
  const int asked = fake->asked;
  Until([&] { return fake->asked > asked + 2; });
  fake->Set(Always(Visibility::Visible()));
  EXPECT_EQ(Finding().at("kind"), "behind") << "the other read's";
  Be(Mode::kEnforce);
  EXPECT_TRUE(BarrierAsync(Lineage(At("posts", "e", 1)), Proceeding(20s)).get().satisfied());
  free.set_value();
  Until([&] { return Now("behind").size() == 2; });
}

// REC-15: the end of the process makes no further read, and loses nothing.
TEST_F(OwnReadsTest, AtTheEndOfTheProcessNoMoreAreMade) {
  for (const int last : {1, 2}) {
    const Isolated isolated;
    std::filesystem::remove_all(folder_);
    Be(Mode::kDryRun);
    std::promise<void> free;
    std::atomic<int> made{0};
    FollowedRead::Came came;
    came.repeat = [&, held = free.get_future().share()]() -> Result {
      const int now = ++made;
      if (now == last) held.wait();
      return now == 1 ? "old" : "new";
    };
    const auto store = MakeFakeStore("posts", {MakeFake("p", [&](Span<const WriteId> ids, Server&) {
      return Answers(std::vector(ids.size(), made > 0 ? Visibility::Visible() : Visibility::NotYet()));
    })});
    const Scope scope(Lineage(At("posts", "e", 1)));
    Begin(store)->Over(store->Servers().front(), came);
    Until([&] { return made == last; });
    auto end = std::async(std::launch::async, [] { Shutdown(); });
    Until([] { return Repeats::Instance().Ends(); });
    free.set_value();
    end.get();
    EXPECT_EQ(Finding().at("kind"), "behind");
    EXPECT_EQ(made, last);
  }
}

// REC-14: no result, and nothing that reads, is kept for longer than it takes.
TEST_F(OwnReadsTest, NothingIsKept) {
  for (const bool comes : {true, false}) {
    const Isolated isolated;
    std::filesystem::remove_all(folder_);
    Be(Mode::kDryRun);
    if (!comes) following::SetFollowFor(100ms);
    auto kept = std::make_shared<OwnReads>(std::vector<Result>{"old", "new", "new"});
    const std::weak_ptr<OwnReads> seen = kept;
    FollowedRead::Came came;
    came.repeat = [kept] { return kept->Next(); };
    kept.reset();
    const auto store = MakeFakeStore("posts", {MakeFake("p", comes ? Later(100ms) : Always(Visibility::NotYet()))});
    {
      const Scope scope(Lineage(At("posts", "e", 1)));
      Begin(store)->Over(store->Servers().front(), std::exchange(came, {}));
    }
    Finding();
    Until([&] { return seen.expired(); });
    following::SetFollowFor(30s);
  }
}

}  // namespace
}  // namespace antipode::testing
