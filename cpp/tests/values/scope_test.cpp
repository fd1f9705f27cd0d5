// Scopes, writes in flight, carrying, reading blocks (SCOPE, LIN-24 to LIN-29).
#include "antipode/scope.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "antipode/carry.h"
#include "antipode/messages.h"
#include "antipode/reading.h"
#include "antipode/settings.h"
#include "environment.h"
#include "scope/scope_impl.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

WriteId At(const std::string& store, std::uint64_t counter) { return *WriteId::Position(store, "e", counter); }

TEST(Scopes, HoldWhatIsAppendedUntilTheyEnd_SCOPE_1_SCOPE_3) {
  const Isolation isolation;
  EXPECT_EQ(CurrentScope(), nullptr);
  ScopePtr kept;
  {
    const Scope scope;
    Append(At("posts", 1));
    EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.1");
    EXPECT_EQ(*Serialize(), "1~posts..e.1");
    kept = CurrentScope();
    EXPECT_FALSE(kept->closed());
  }
  EXPECT_EQ(CurrentScope(), nullptr);
  EXPECT_TRUE(kept->closed());
  kept->Stop();  // twice is harmless
  EXPECT_TRUE(kept->closed());
}

TEST(Scopes, ThatAreClosedDropAndCount_SCOPE_4) {
  const Isolation isolation;
  ScopePtr kept;
  {
    const Scope scope;
    kept = scope.shared();
  }
  kept->Append(At("posts", 1));
  EXPECT_EQ(kept->lineage(), Lineage().MarkedIncomplete({"posts"}));
  EXPECT_EQ(Isolation::Counted("antipode.write.lost", {"reason=closed", "store=other"}), 1U);
  EXPECT_TRUE(isolation.Said("dropped a write to posts: its scope (values/scope_test.cpp:"));
}

using Ways = std::vector<std::function<void(LineageScope&, const PendingPtr&)>>;

void ExpectDropped(const Ways& ways, const char* left) {
  for (const auto& way : ways) {
    const Isolation isolation;
    const ScopePtr kept = Scope().shared();
    const PendingPtr write = kept->Begin("posts");
    way(*kept, write);
    kept->End(write);
    EXPECT_EQ(kept->lineage().Serialize(), left);
    EXPECT_EQ(Isolation::Counted("antipode.write.lost", {"reason=closed"}), 1U);
  }
}

// Each way by which a lineage comes to a scope.
Ways Comings(const Lineage& came) {
  return {
      [came](LineageScope& scope, const PendingPtr&) { scope.Transfer(came); },
      [came](LineageScope& scope, const PendingPtr&) { scope.TransferRead(came); },
      [came](LineageScope& scope, const PendingPtr&) { scope.Merge(came); },
      [came](LineageScope& scope, const PendingPtr&) { scope.Receive(came); },
  };
}

TEST(Scopes, ThatAreClosedAreMarkedForWhatTheyDrop_SCOPE_4) {
  const Ways own{
      [](LineageScope& scope, const PendingPtr&) { scope.Append(At("posts", 1)); },
      [](LineageScope& scope, const PendingPtr& write) { scope.Written(write, At("posts", 1)); },
  };
  ExpectDropped(own, "1~_.i.posts");
  const Lineage came = Read("1~posts..e.1");
  ExpectDropped(Comings(came), "1~_.i.posts");
  ExpectDropped(Comings(came.MarkedIncomplete({"users"})), "1~_.i");
  ExpectDropped(Comings(Lineage().MarkedIncomplete({"users"})), "1~_.i");
  ExpectDropped(Comings(came.MarkedIncomplete({})), "1~_.i");
}

// What the thread writes behind it is of what was current before.
TEST(Scopes, ThatGoWithTheOneRoundThemAreIncomplete_SCOPE_33) {
  const Isolation isolation;
  auto outer = std::make_unique<Scope>();
  const Scope within;
  outer.reset();
  EXPECT_EQ(CurrentScope(), nullptr);
  EXPECT_FALSE(within.lineage().IsComplete());
}

TEST(Scopes, ThatAnotherThreadEndsAreNoLongerCurrent_SCOPE_3) {
  const Isolation isolation;
  const auto ended = [] {
    auto scope = std::make_unique<Scope>();
    const ScopePtr kept = scope->shared();
    std::thread([&] { scope.reset(); }).join();
    return kept;
  };
  EXPECT_TRUE(ended()->closed());
  EXPECT_EQ(CurrentScope(), nullptr);
  const Scope outer;
  const ScopePtr kept = ended();
  ended();
  EXPECT_EQ(CurrentScope(), outer.shared());
  Append(At("posts", 1));
  EXPECT_EQ(outer.lineage().Serialize(), "1~posts..e.1");
  std::thread(Carry([&] { EXPECT_EQ(CurrentScope(), outer.shared()); })).join();
  const Activation activation(kept);
  EXPECT_EQ(CurrentScope(), kept) << "who makes it current has it so: its writes are counted as late";
}

TEST(Scopes, LieInOneAnother_SCOPE_5_SCOPE_10) {
  const Isolation isolation;
  const Scope outer;
  Append(At("a", 1));
  {
    const Scope inner(Read("1~b..e.5"));
    Append(At("c", 1));
    EXPECT_EQ(inner.lineage().Serialize(), "1~b..e.5~c..e.1");
  }
  EXPECT_EQ(CurrentScope(), outer.shared());
  const ScopePtr opened = Root();
  EXPECT_TRUE(opened->lineage().empty());
  Append(At("d", 1));
  Stop();
  EXPECT_TRUE(opened->closed());
  EXPECT_EQ(CurrentScope(), outer.shared());
  EXPECT_EQ(outer.lineage().Serialize(), "1~a..e.1");
}

TEST(Scopes, OutsideOfAnyCountAnOrphanWithItsSite_SCOPE_9) {
  const Isolation isolation;
  Append(At("posts", 1));
  Transfer(Read("1~s..e.1"));
  EXPECT_EQ(Isolation::Counted("antipode.write.lost", {"reason=orphan"}), 2U);
  EXPECT_TRUE(isolation.Said("site=values/scope_test.cpp:")) << isolation.lines().front();
  EXPECT_TRUE(Remove(At("posts", 1)).lineage.empty());
}

TEST(Scopes, OutsideOfAnySerializeIsAMistake_SCOPE_22) {
  const Isolation isolation;
  const Result<std::string> text = Serialize();
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kConfiguration);
}

TEST(Scopes, LoseNoAppendOfManyThreads_SCOPE_2) {
  const Isolation isolation;
  const Scope scope;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back(Carry([t] {
      for (std::uint64_t i = 0; i < 100; ++i) {
        Append(*WriteId::Make("s" + std::to_string(t), "k" + std::to_string(i), Ordered{"", i}));
      }
    }));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scope.lineage().size(), 400U);
}

TEST(Removing, HoldsForWhatComesInByItself_LIN_24_LIN_25) {
  const Isolation isolation;
  const Scope scope(Read("1~s.a.e.1~t..e.1"));
  const Removal removed = Remove(*WriteId::Make("s", "a", Ordered{"e", 1}));
  EXPECT_EQ(removed.lineage.Serialize(), "1~s.a.e.1");
  EXPECT_TRUE(removed.still_covered.empty());
  EXPECT_EQ(RemoveStore("t").lineage.Serialize(), "1~t..e.1");
  scope->Merge(Read("1~s.a.e.1~t..e.1~_.i.t"));
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_EQ(*Serialize(), "1");  // LIN-26: R is never serialized
  Transfer(Read("1~s.a.e.1"));
  EXPECT_EQ(scope.lineage().Serialize(), "1~s.a.e.1");
}

TEST(Pending, MarksTheCopyThatLeavesAndNotTheScope_SCOPE_14_SCOPE_16_SCOPE_20) {
  const Isolation isolation;
  const Scope scope;
  const PendingPtr write = scope->Begin("posts");
  EXPECT_EQ(*Serialize(), "1~_.i.posts");
  EXPECT_TRUE(scope->Known().IsComplete());
  scope->Written(write, At("posts", 7));
  EXPECT_EQ(*Serialize(), "1~posts..e.7");
  EXPECT_EQ(Isolation::Counted("antipode.finding.count", {"kind=published_before_commit"}), 1U);
}

// The value may be put beside data, where nobody knows of the open transaction.
TEST(Pending, MarksTheValueThatAScopeHandsOutAndIsNoFinding_SCOPE_20) {
  const Isolation isolation(Variables{{"ANTIPODE_ON_PENDING", "raise"}});
  const Scope scope;
  const PendingPtr write = scope->Begin("posts");
  EXPECT_EQ(scope.lineage().Serialize(), "1~_.i.posts");
  EXPECT_EQ(CurrentScope()->lineage().Serialize(), "1~_.i.posts");
  scope->OutcomeUnknown(scope->Begin("likes"));
  EXPECT_EQ(scope.lineage().Serialize(), "1~_.i.likes.posts");
  EXPECT_EQ(Isolation::Counted("antipode.finding.count", {"kind=published_before_commit"}), 0U);
  scope->Written(write, At("posts", 7));
  EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.7~_.i.likes");
  EXPECT_TRUE(scope->Known().IsComplete());
}

TEST(Pending, GoesWithARollbackAndStaysWhereNobodyKnows_SCOPE_17) {
  const Isolation isolation;
  const Scope scope;
  scope->End(scope->Begin("posts"));
  EXPECT_EQ(*Serialize(), "1");
  scope->OutcomeUnknown(scope->Begin("posts"));
  EXPECT_EQ(*Serialize(), "1~_.i.posts");
  EXPECT_TRUE(scope->impl().PublishedBeforeCommit().empty());
}

TEST(Pending, OfAnotherThreadIsNoFinding_SCOPE_18) {
  const Isolation isolation;
  const Scope scope;
  std::thread(Carry([] { static_cast<void>(CurrentScope()->Begin("posts")); })).join();
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_TRUE(scope->impl().PublishedBeforeCommit().empty());
  EXPECT_EQ(*Serialize(), "1~_.i.posts");
}

TEST(Pending, FailsOrWarnsAsTheSettingSays_SCOPE_19) {
  const Isolation isolation(Variables{{"ANTIPODE_ON_PENDING", "warn"}});
  const Scope scope;
  const PendingPtr write = scope->Begin("posts");
  EXPECT_NE(write->site(), "");
  ASSERT_TRUE(Serialize().ok());
  EXPECT_TRUE(isolation.Said("sent a lineage before the commit of posts"));
  SettingWords words;
  words.on_pending = OnPending::kRaise;
  ASSERT_TRUE(Configure(words).ok());
  const Result<std::string> text = Serialize();
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kPendingWrite);
  EXPECT_FALSE(OutgoingMessage().ok());
}

TEST(Implausible, EntriesAreComparedWithTheTimeOfSending_LIN_28_LIN_29) {
  const Isolation isolation;
  const Scope scope;
  const PendingPtr first = scope->Begin("s");
  const PendingPtr second = scope->Begin("s");
  scope->Written(second, At("s", 9));
  scope->Written(first, At("s", 5));  // answered later, written earlier: nothing is wrong with either
  EXPECT_EQ(scope.lineage().Serialize(), "1~s..e.9");
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=implausible"}), 0U);
  Transfer(Read("1~s..e.18446744073709551615"));
  scope->Written(scope->Begin("s"), At("s", 10));
  EXPECT_EQ(scope.lineage().Serialize(), "1~s..e.10~_.i.s");
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=implausible"}), 1U);
  EXPECT_EQ(scope->gaps().front().reason, "implausible");
}

TEST(Late, WritesAfterTheHeaderLeftAreCounted_PROP_16) {
  const Isolation isolation;
  const Scope scope;
  scope->NoteSent();
  Append(At("posts", 1));
  scope->Written(scope->Begin("posts"), At("posts", 2));
  EXPECT_EQ(Isolation::Counted("antipode.write.late", {"store=other"}), 2U);
  EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.2");
}

TEST(Carrying, TakesTheScopeAlongAndRestoresTheThreadsOwn_SCOPE_12) {
  const Isolation isolation;
  ScopePtr outer;
  std::function<ScopePtr()> carried;
  {
    const Scope scope;
    outer = scope.shared();
    carried = Carry([] { return CurrentScope(); });
  }
  std::thread([&] {
    const Scope own;
    EXPECT_EQ(carried(), outer);
    EXPECT_EQ(CurrentScope(), own.shared());
  }).join();
}

TEST(Carrying, RestoresAlsoWhereTheWorkThrows_SCOPE_12) {
  const Isolation isolation;
  const Scope scope;
  auto carried = Carry([] { throw 1; });
  std::thread([&] {
    EXPECT_THROW(carried(), int);
    EXPECT_EQ(CurrentScope(), nullptr);
  }).join();
}

TEST(Carrying, KeepsADetachedScopeOpenUntilTheWorkHasRun_SCOPE_7_SCOPE_12) {
  const Isolation isolation;
  const Scope request(Read("1~a..e.1"));
  ScopePtr detached;
  std::function<void()> work;
  {
    const Scope scope = DetachedScope();
    detached = scope.shared();
    work = Carry([] { Append(At("b", 1)); });
  }
  EXPECT_FALSE(detached->closed());
  Append(At("c", 1));
  work();
  EXPECT_TRUE(detached->closed());
  EXPECT_EQ(detached->lineage().Serialize(), "1~a..e.1~b..e.1");
  EXPECT_EQ(request.lineage().Serialize(), "1~a..e.1~c..e.1");
}

TEST(Carrying, LetsADetachedScopeCloseWhereTheWorkNeverRan_SCOPE_12) {
  const Isolation isolation;
  ScopePtr detached;
  {
    const Scope scope = DetachedScope();
    detached = scope.shared();
    const std::function<void()> never = Carry([] {});
  }
  EXPECT_TRUE(detached->closed());
}

struct Pool {
  template <typename Function>
  void Post(Function&& function) {
    std::thread(std::forward<Function>(function)).join();
  }
};

TEST(Carrying, IsDoneByAPoolForAllItsWork_SCOPE_12) {
  const Isolation isolation;
  const Scope scope;
  Pool pool;
  CarryAll(pool).Post([] { Append(At("a", 1)); });
  EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.1");
}

void Be(Mode mode) {
  SettingWords words;
  words.mode = mode;
  ASSERT_TRUE(Configure(words).ok());
}

TEST(Scopes, ThatAreOpenWhenTheModeLeavesOffAreIncomplete_SCOPE_26) {
  const Isolation isolation;
  ScopePtr ended;
  const Scope before(*Lineage::Deserialize("1~posts..e.1"));
  Be(Mode::kOff);
  const Scope during;
  {
    const Scope brief;
    ended = brief.shared();
  }
  EXPECT_TRUE(before->Known().IsComplete());
  Be(Mode::kEnforce);
  const Scope after;
  for (const Scope* const open : {&before, &during}) {
    EXPECT_EQ((*open)->Known().incomplete(), std::vector<std::string>{""});
    ASSERT_EQ((*open)->gaps().size(), 1U);
    EXPECT_EQ((*open)->gaps().front().reason, "mode");
  }
  EXPECT_EQ(before->Additions().Serialize(), "1~_.i");
  for (const ScopePtr& other : {ended, after.shared()}) {
    EXPECT_TRUE(other->Known().IsComplete() && other->gaps().empty());
  }
  during->Vouch();
  EXPECT_TRUE(during->Known().IsComplete() && during->gaps().empty());
  before->Stop();
  Be(Mode::kDryRun);  // from a mode that was not off
  EXPECT_EQ(before->Known().Serialize(), "1~posts..e.1~_.i");
  EXPECT_EQ(before->gaps().size(), 1U);
  EXPECT_TRUE(after->Known().IsComplete());
}

TEST(Forks, LeaveNoScopeInTheChild_SCOPE_13) {
  const Isolation isolation;
  const Scope scope;
  const pid_t child = fork();
  if (child == 0) {
    const bool none = CurrentScope() == nullptr;
    const Scope own;  // and its locks are free
    Append(At("a", 1));
    _exit(none && own.lineage().size() == 1 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(CurrentScope(), scope.shared());
}

TEST(Readings, CollectWhatShimsSaw_SHIM_12_SHIM_13) {
  const Isolation isolation;
  const Scope scope;
  EXPECT_EQ(CurrentReading(), nullptr);
  {
    const Reading seen;
    CurrentReading()->Saw({At("posts", 5)}, Read("1~users..e.1"));
    CurrentReading()->Marked("files");
    EXPECT_EQ(seen.lineage().Serialize(), "1~posts..e.5~users..e.1~_.i.files");
    EXPECT_EQ(CurrentReading()->after(), std::nullopt);
  }
  EXPECT_EQ(CurrentReading(), nullptr);
  EXPECT_TRUE(scope.lineage().empty());
  {
    ReadingOptions options;
    options.after = Read("1~posts..e.1");
    options.merge = true;
    const Reading seen(options);
    EXPECT_EQ(*CurrentReading()->after(), Read("1~posts..e.1"));
    std::thread(Carry([] { CurrentReading()->Saw({At("posts", 6)}); })).join();
  }
  EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.6");
}

}  // namespace
}  // namespace antipode::testing
