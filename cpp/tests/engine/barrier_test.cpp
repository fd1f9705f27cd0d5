// `Barrier()` on the memory store: what it proves, refuses and says (spec BAR).
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>

#include "antipode/fallback.h"
#include "antipode/memory.h"
#include "antipode/scope.h"
#include "engine/fakes.h"
#include "environment.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

class BarrierTest : public EngineTest {};

void Done(const MemoryReply& reply) { ASSERT_TRUE(reply.ok()) << reply.message; }

std::string WordsOf(const BarrierResult& result) { return result.error() == nullptr ? "" : result.error()->message; }

void IsRefused(const BarrierResult& result, ErrorCode code, const std::string& words) {
  ASSERT_NE(result.error(), nullptr) << words;
  EXPECT_EQ(result.error()->code, code) << WordsOf(result);
  EXPECT_NE(WordsOf(result).find(words), std::string::npos) << WordsOf(result);
  EXPECT_FALSE(result.satisfied());
}

// BAR-1, BAR-2, BAR-10, BAR-23.
TEST_F(BarrierTest, WaitsUntilTheWriteIsVisibleInTheRegion) {
  MemoryStore store("blog-posts", {"a", "b"}, 80ms);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  const Scope scope;
  Done(writer.Set("post:42", "hi"));
  EXPECT_EQ(reader.Get("post:42").value, std::nullopt);
  const BarrierResult result = Barrier(BarrierOptions().Timeout(20s));
  EXPECT_EQ(reader.Get("post:42").value, "hi");
  EXPECT_TRUE(result.satisfied() && result.complete()) << result.Explain();
  EXPECT_GT(result.waited(), 30ms);
  EXPECT_EQ(result.store("blog-posts").verdict, Verdict::kVisible);
  EXPECT_NE(result.store("blog-posts").reason.find("2 of 2 replicas"), std::string::npos);
  EXPECT_EQ(result.store("blog-posts").servers.size(), 2U);
  EXPECT_NE(result.ToString().find("blog-posts visible"), std::string::npos);
}

// SCOPE-20, BAR-15: what a scope hands out in an open transaction says so where it is waited for.
TEST_F(BarrierTest, ALineageThatAScopeHandedOutBeforeTheCommitIsNotComplete) {
  MemoryStore store("blog-posts", {"a", "b"});
  MemoryClient writer = store.Client("a");
  const Scope scope;
  Done(writer.Set("post:42", "hi"));
  const PendingPtr open = scope->Begin("blog-posts");
  const BarrierResult before = Barrier(scope.lineage(), Proceeding(20s));
  EXPECT_TRUE(before.satisfied() && !before.complete()) << before.Explain();
  scope->End(open);
  EXPECT_TRUE(Barrier(scope.lineage(), Proceeding(20s)).complete());
}

// BAR-13: nobody can be asked, so nothing is proved.
TEST_F(BarrierTest, AStoreWithoutAnyServerNeverPasses) {
  MakeFakeStore("nowhere", {});
  const Scope scope(Lineage(At("nowhere", "e", 1)));
  IsRefused(Barrier(), ErrorCode::kUnproven, "no server");
}

// BAR-21, BAR-25.
TEST_F(BarrierTest, ReachReplicaSpeaksOfTheWrappedClientsAlone) {
  MemoryStore store("p", {"a", "b1", "b2"});
  MemoryClient writer = store.Client("a");
  store.Register({"b1", "b2"});
  store.Freeze("b2");
  const Scope scope;
  Done(writer.Set("k", "v"));
  EXPECT_TRUE(Barrier(BarrierOptions().Reach(Reach::kReplica).Timeout(20s)).satisfied());
  IsRefused(Barrier(BarrierOptions().Timeout(100ms)), ErrorCode::kTimedOut, "memory://p/b2");
}

// BAR-28, BAR-43.
TEST_F(BarrierTest, TheDeadlineHoldsAndTheErrorSaysWhereTheReplicaIs) {
  MemoryStore store("blog-posts", {"a", "b"});
  MemoryClient writer = store.Client("a");
  static_cast<void>(store.Client("b"));
  store.Freeze("b");
  const Scope scope;
  Done(writer.Set("k", "v"));
  const TimePoint began = Clock::now();
  const BarrierResult late = Barrier(BarrierOptions().Timeout(150ms));
  EXPECT_GE(Clock::now() - began, 149ms);
  EXPECT_LT(Clock::now() - began, 5s);
  IsRefused(late, ErrorCode::kTimedOut, "blog-posts is not visible after ");
  IsRefused(late, ErrorCode::kTimedOut, "ms: replica memory://");
  IsRefused(late, ErrorCode::kTimedOut, "memory://blog-posts/a is there");
  // And never later than the request's own deadline.
  scope->set_deadline(Clock::now() + 50ms);
  EXPECT_FALSE(Barrier(Proceeding(30s)).satisfied());
  EXPECT_LT(Clock::now() - began, 20s);
}

// BAR-29: a look ends with the servers' answer.
TEST_F(BarrierTest, ATimeoutOfZeroLooksOnce) {
  for (const WriteId& write : {At("s", "e", 7), Object("s", "k", 7)}) {
    const Isolated isolated;
    const FakePtr fake = MakeFake("s1", Always(Visibility::NotYet()));
    MakeFakeStore("s", {fake});
    for (int look = 0; look < 3; ++look) {
      const int before = fake->asked;
      EXPECT_EQ(Barrier(Lineage(write), Proceeding(0ms)).store("s").verdict, Verdict::kNotYet);
      EXPECT_GT(fake->asked, before) << "it looks, and does not guess";
    }
  }
}

// BAR-5, BAR-8, BAR-21, BAR-45.
TEST_F(BarrierTest, MistakesOfTheProgrammerAreErrorsAtOnce) {
  {
    const Scope scope;
    IsRefused(Barrier(), ErrorCode::kConfiguration, "registered no store");
  }
  MemoryStore store("blog-posts", {"a", "b"});
  static_cast<void>(store.Client("a"));
  IsRefused(Barrier(), ErrorCode::kConfiguration, "outside any scope");
  EXPECT_NE(BarrierAsync().get().error(), nullptr);
  const Scope scope;
  IsRefused(Barrier(BarrierOptions().Stores({"blog-post"})), ErrorCode::kUnknownStore, "Did you mean");
  IsRefused(Barrier(BarrierOptions().Stores({"blog-post"})), ErrorCode::kUnknownStore, "registered: blog-posts");
  IsRefused(Barrier(BarrierOptions().Stores({})), ErrorCode::kConfiguration, "asks for nothing");  // BAR-58
  for (const auto timeout :
       {BarrierOptions::Seconds(-1), BarrierOptions::Seconds(3601), BarrierOptions::Seconds(INFINITY)}) {
    IsRefused(Barrier(BarrierOptions().Timeout(timeout)), ErrorCode::kConfiguration, "0 to 3600 s");
  }
  EXPECT_FALSE(JoinStore(ShimType::Of<FakeShim>("fake"), StoreOptions("late").Timeout(2h)).ok());
  EXPECT_NE(Barrier(BarrierOptions().Stores({"blog-post"})).ToString().find("Did you mean"), std::string::npos);
  IsRefused(Barrier(BarrierOptions().Reach(Reach::kSession)), ErrorCode::kConfiguration, "WaitOnRead");
  IsRefused(Barrier(BarrierOptions().OnTimeout(Policy::kRedeliver)), ErrorCode::kConfiguration, "message");
  IsRefused(Barrier(BarrierOptions().OnTimeout(Policy::kAsTimeout)), ErrorCode::kConfiguration, "OnTimeout");
  IsRefused(Barrier(BarrierOptions().OnVacuous(Policy::kRedeliver)), ErrorCode::kConfiguration, "OnVacuous");
  const Scope message(
      std::make_shared<LineageScope>(Lineage(), ScopeKind::kMessage, Delivery{false, "it is acknowledged"}));
  IsRefused(Barrier(BarrierOptions().OnUnproven(Policy::kRedeliver)), ErrorCode::kConfiguration, "it is acknowledged");
}

// BAR-6, BAR-48: the name is in somebody else's text, which makes neither a pass nor a message that nobody can take.
TEST_F(BarrierTest, AMisspeltStoreIsUnprovenByThePolicies) {
  for (const char* name : {"posts", "other"}) MakeFakeStore(name, {MakeFake(name, Always(Visibility::Visible()))});
  const Scope scope(std::make_shared<LineageScope>(Lineage({At("Posts", "e", 1), At("other", "e", 1)}),
                                                   ScopeKind::kMessage, Delivery{true, {}}));
  const auto by = [](Policy policy) { return Barrier(BarrierOptions().OnUnproven(policy)); };
  for (const BarrierResult& result : {by(Policy::kRaise), by(Policy::kAsTimeout), by(Policy::kRedeliver)}) {
    ASSERT_NE(result.error(), nullptr);
    EXPECT_NE(result.error()->code, ErrorCode::kConfiguration);
    EXPECT_EQ(result.error()->message_code, "AP107");
    EXPECT_NE(WordsOf(result).find(R"(names store "Posts", this process has registered "posts")"), std::string::npos);
    EXPECT_EQ(result.store("other").verdict, Verdict::kVisible);
  }
  EXPECT_TRUE(by(Policy::kProceed).error() == nullptr && !by(Policy::kProceed).satisfied());
  EXPECT_FALSE(Barrier(Proceeding(20s).Stores({"posts"})).satisfied());
  EXPECT_TRUE(Barrier(BarrierOptions().Stores({"other"})).complete());
  const BarrierResult recorded = Barrier(BarrierOptions().DryRun());
  EXPECT_TRUE(recorded.error() == nullptr && recorded.satisfied());
  EXPECT_EQ(recorded.store("Posts").verdict, Verdict::kUnproven);
  const Lineage marked = Lineage().MarkedIncomplete({"Posts"});
  EXPECT_FALSE(Barrier(marked).complete()) << "BAR-15";
  EXPECT_TRUE(Barrier(marked, BarrierOptions().Stores({"other"})).complete());
}

// BAR-19: the language says it at once.
static_assert(!std::is_convertible_v<BarrierResult, bool> && !std::is_constructible_v<bool, BarrierResult>);

// BAR-3, BAR-17, BAR-20.
TEST_F(BarrierTest, StoresElsewhereAreCarriedOnAndAVacuousSiteIsLogged) {
  const Isolation listening;
  MemoryStore store("blog-posts", {"a", "b"});
  static_cast<void>(store.Client("a"));
  const Scope scope(Lineage(At("user-acl", "e", 1)));
  const BarrierResult result = Barrier();
  EXPECT_TRUE(result.satisfied() && result.vacuous() && !result.complete());
  EXPECT_EQ(result.error(), nullptr);
  EXPECT_NE(result.ToString().find("user-acl elsewhere (not registered in this process)"), std::string::npos);
  const BarrierResult refused = Barrier(BarrierOptions().OnVacuous(Policy::kRaise));
  ASSERT_NE(refused.error(), nullptr);
  EXPECT_EQ(refused.error()->code, ErrorCode::kIncomplete);
  EXPECT_EQ(Barrier(BarrierOptions().RequireComplete()).error()->code, ErrorCode::kIncomplete);
  EXPECT_EQ(Serialize().value(), "1~user-acl..e.1");
  std::size_t said = 0;
  for (const std::string& line : listening.lines()) {
    const bool vacuous = line.find("judged nothing") != std::string::npos;
    said +=
        vacuous && line.find("user-acl") != std::string::npos && line.find("blog-posts") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(said, 3U) << "one a site";
}

// SCOPE-23: another region has not passed.
TEST_F(BarrierTest, EntriesStayAfterAPass) {
  MemoryStore store("s", {"a", "b"});
  MemoryClient writer = store.Client("a");
  const Scope scope;
  Done(writer.Set("k", "v"));
  const std::string before = Serialize().value();
  EXPECT_TRUE(Barrier(Proceeding(20s)).satisfied());
  EXPECT_EQ(Serialize().value(), before);
}

// BAR-26, BAR-27.
TEST_F(BarrierTest, OneReplicaThatIsDownIsLeftOutAndNamedUntilItAnswers) {
  SettingWords words;
  words.replica_out_after = 300ms;
  Set(words);
  const FakePtr gone = MakeFake("gone", Down());
  MakeFakeStore("s", {MakeFake("up", Always(Visibility::Visible())), gone});
  const Lineage lineage(Object("s", "k"));
  const BarrierResult result = Barrier(lineage, BarrierOptions().Timeout(20s));
  EXPECT_TRUE(result.satisfied() && !result.complete());
  EXPECT_EQ(result.store("s").LeftOut(), std::vector<std::string>{"gone"});
  EXPECT_NE(result.Explain().find("connection refused"), std::string::npos);
  words.on_replica_out = OnReplicaOut::kFail;
  Set(words);
  IsRefused(Barrier(lineage, BarrierOptions().Timeout(20s)), ErrorCode::kUnproven, "gone");
  words.on_replica_out = OnReplicaOut::kName;
  Set(words);
  gone->Set(Always(Visibility::NotYet()));
  Until([&] { return !Barrier(lineage, Proceeding(50ms)).satisfied(); });
  gone->Set(Always(Visibility::Visible()));
  Until([&] { return Barrier(lineage, Proceeding(500ms)).complete(); });
}

// BAR-2: in parallel, not one after the other.
TEST_F(BarrierTest, SeveralStoresAreWaitedForTogetherUnderOneDeadline) {
  std::vector<std::unique_ptr<MemoryStore>> stores;
  const Scope scope;
  for (const char* name : {"one", "two", "three", "four"}) {
    stores.push_back(std::make_unique<MemoryStore>(name, std::vector<std::string>{"a", "b"}, 400ms));
    stores.back()->Register({"b"});
    Done(stores.back()->Client("a").Set("k", "v"));
  }
  const BarrierResult result = Barrier(BarrierOptions().Timeout(20s));
  EXPECT_TRUE(result.satisfied());
  EXPECT_LT(result.waited(), 1200ms);
}

// BAR-22.
TEST_F(BarrierTest, AFunctionListsTheReplicasAndWrapsJoinOneStore) {
  const FakePtr up = MakeFake("up", Always(Visibility::Visible()));
  const auto type = ShimType::Of<FakeShim>("fake");
  ASSERT_TRUE(JoinStore(type, StoreOptions("s").ReplicasFrom([up]() -> Result<Targets> { return Targets{up}; })).ok());
  const BarrierResult result = Barrier(Lineage(Object("s", "k")));
  ASSERT_EQ(result.store("s").servers.size(), 1U);
  EXPECT_EQ(result.store("s").servers.front().address, "up");
  EXPECT_EQ(JoinStore(type, "s").value(), FindStore("s").value());
  class Another : public FakeShim {};
  EXPECT_FALSE(JoinStore(ShimType::Of<Another>("another"), "s").ok());
  EXPECT_FALSE(JoinStore("nobody-registered-this", "s").ok());
  ASSERT_TRUE(Register<FakeShim>("registered-here").ok());
  EXPECT_TRUE(Register<FakeShim>("registered-here").ok());
  EXPECT_FALSE(Register<Another>("registered-here").ok());
  EXPECT_TRUE(JoinStore("registered-here", "t").ok());
}

// BAR-11, SHIM-31, SHIM-32: the memory store's three kinds of versions.
TEST_F(BarrierTest, OverwrittenAndDeletedCountAsVisibleAndOpaqueVersionsDoNotCompare) {
  for (const Versions versions : {Versions::kPosition, Versions::kObject, Versions::kOpaque}) {
    const Isolated isolated;
    MemoryOptions options;
    options.name = "s";
    options.versions = versions;
    MemoryStore store(options);
    MemoryClient writer = store.Client("a");
    static_cast<void>(store.Client("b"));
    const auto written = [&](const char* value) {
      const Scope scope;
      Done(value == nullptr ? writer.Delete("k") : writer.Set("k", value));
      return scope.lineage();
    };
    const Lineage first = written("1");
    const Lineage second = written("2");
    const bool opaque = versions == Versions::kOpaque;
    EXPECT_TRUE(Barrier(second, Proceeding(20s)).satisfied());
    EXPECT_EQ(Barrier(first, Proceeding(opaque ? 50ms : 20s)).satisfied(), !opaque);
    const Lineage gone = written(nullptr);
    EXPECT_EQ(Barrier(gone, Proceeding(20s)).store("s").verdict, opaque ? Verdict::kUnproven : Verdict::kVisible);
  }
}

// EPOCH-11, EPOCH-24, EPOCH-25, EPOCH-14.
TEST_F(BarrierTest, LostWritesAreUnprovenAtOnceAndAnOperatorSettlesAnEpoch) {
  MemoryStore store("s", {"a", "b", "c"});
  MemoryClient a = store.Client("a");
  MemoryClient b = store.Client("b");
  static_cast<void>(store.Client("c"));
  const auto written = [&](MemoryClient& client, const char* key) {
    const Scope scope;
    EXPECT_TRUE(client.Set(key, "v").ok());
    return scope.lineage();
  };
  const Lineage kept = written(a, "kept");
  const Lineage lost = written(a, "lost");
  store.Promote("b", 1);
  EXPECT_TRUE(Barrier(kept, Proceeding(20s)).satisfied());
  const BarrierResult result = Barrier(lost, Proceeding(20s));
  EXPECT_EQ(result.store("s").verdict, Verdict::kUnproven);
  EXPECT_NE(result.store("s").reason.find("may be lost"), std::string::npos);
  EXPECT_LT(result.waited(), 10s) << "an epoch that has ended is answered at once";
  EXPECT_TRUE(Barrier(written(b, "new"), Proceeding(20s)).satisfied());
  EXPECT_EQ(Barrier(Lineage(Object("s", "kept")), Proceeding(20s)).store("s").verdict, Verdict::kUnproven);
  const Lineage ancient(At("s", "0123456789abcdef", 7));
  EXPECT_FALSE(Barrier(ancient, Proceeding(100ms)).satisfied());
  store.Settle("0123456789abcdef");
  EXPECT_TRUE(Barrier(ancient, Proceeding(20s)).satisfied());
}

// BAR-46.
TEST_F(BarrierTest, ReadOrFallbackReadsHereOrThere) {
  MemoryStore store("s", {"a", "b"});
  MemoryClient a = store.Client("a");
  MemoryClient b = store.Client("b");
  const Scope scope;
  Done(a.Set("k", "v"));
  const auto read = [&](BarrierOptions options) {
    return ReadOrFallback([&] { return b.Get("k").value; }, [] { return std::optional<std::string>("primary"); },
                          options);
  };
  EXPECT_EQ(read(BarrierOptions().Timeout(20s)).value(), "v");
  store.Freeze("b");
  Done(a.Set("k", "w"));
  EXPECT_EQ(read(BarrierOptions().Timeout(20ms)).value(), "primary");
  SettingWords words;
  words.max_fallbacks = 0;
  Set(words);
  const auto refused = read(BarrierOptions().Timeout(20ms));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kTimedOut);
  EXPECT_NE(refused.error().message.find("no fallback"), std::string::npos);
  ASSERT_NE(refused.error().result, nullptr);
}

// BAR-46: the place that it falls back to is judged, and what is unproven may be lost there, too.
TEST_F(BarrierTest, AFallbackIsJudgedAndNotTriedWhereSomethingIsUnproven) {
  MakeFakeStore("lost",
                {MakeFake("lost", Always(Visibility::Unproven("its epoch has ended", UnprovenKind::kHistory)))});
  MakeFakeStore("late", {MakeFake("late", Always(Visibility::NotYet()))});
  std::optional<Lineage> after;
  const auto read = [&](BarrierOptions options) {
    return ReadOrFallback([] { return 1; },
                          [&] {
                            after = CurrentReading()->after();
                            CurrentReading()->Saw({At("seen", "e", 1)});
                            return 2;
                          },
                          options);
  };
  {
    const Scope scope(Lineage(At("lost", "e", 1)));
    const auto refused = read(BarrierOptions().Timeout(20s));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnproven);
    EXPECT_NE(refused.error().message.find("antipode epoch settle lost EPOCH --position N --at URL"), std::string::npos)
        << refused.error().message;
    EXPECT_FALSE(after);
    EXPECT_EQ(read(BarrierOptions().Timeout(20s).OnUnproven(Policy::kProceed)).value(), 2);
  }
  {  // what an open branch writes is known nowhere, so that no place can be judged
    const auto ends = std::chrono::duration_cast<std::chrono::milliseconds>(
        (std::chrono::system_clock::now() + 1min).time_since_epoch());
    const std::string branch =
        "1~antipode-branches.orders_2F" + std::string(32, 'a') + ".." + std::to_string(ends.count());
    const Scope scope(*Lineage::Deserialize(branch));
    const auto refused = read(BarrierOptions().Timeout(20ms).OnUnproven(Policy::kProceed));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kTimedOut);
  }
  {  // the block around it is waited for all the same, and a store that was not asked for is not
    const Lineage around(At("around", "e", 1));
    const Reading outer(ReadingOptions{around, false});
    const Scope scope(Lineage({At("late", "e", 1), At("lost", "e", 1)}));
    EXPECT_EQ(read(BarrierOptions().Timeout(20ms).Stores({"late"})).value(), 2);
    EXPECT_EQ(after, around | Lineage(At("late", "e", 1)));
  }
  const Lineage lineage(At("late", "e", 1));
  const Scope scope(lineage);
  const Reading outer;
  EXPECT_EQ(read(BarrierOptions().Timeout(20ms)).value(), 2);
  EXPECT_EQ(after, lineage);
  EXPECT_EQ(outer.lineage(), Lineage(At("seen", "e", 1)));
}

// BAR-50, BAR-48.
TEST_F(BarrierTest, AReadThatWaitsObeysTheModeAndThePolicy) {
  for (const Mode mode : {Mode::kEnforce, Mode::kDryRun}) {
    for (const Policy policy : {Policy::kRaise, Policy::kProceed}) {
      const Isolated isolated;
      SettingWords words;
      words.timeout = mode == Mode::kDryRun ? 20s : 100ms;
      words.on_timeout = policy;
      words.mode = mode;
      words.records = ::testing::TempDir() + "/antipode-reads";
      Set(words);
      MemoryStore store("s", {"a", "b"});
      MemoryClient a = store.Client("a");
      MemoryClient b = store.Client("b", StoreOptions("s").WaitOnRead(true));
      const Scope scope;
      Done(a.Set("k", "1"));
      Until([&] { return b.Get("k").value == "1"; });
      store.Freeze("b");
      Done(a.Set("k", "2"));
      const TimePoint began = Clock::now();
      const MemoryReply read = b.Get("k");
      EXPECT_LT(Clock::now() - began, 10s);
      if (mode == Mode::kEnforce && policy == Policy::kRaise) {
        ASSERT_TRUE(read.error.has_value());
        EXPECT_EQ(read.error->code, ErrorCode::kTimedOut);
        EXPECT_NE(read.error->message.find("(wait on read)"), std::string::npos);
      } else {
        EXPECT_EQ(read.value, "1");
      }
    }
  }
}

TEST_F(BarrierTest, AssertBarriersTellsWhetherTheCodeWaited) {
  MemoryStore store("s", {"a", "b"});
  MemoryClient a = store.Client("a");
  const Scope scope;
  Done(a.Set("k", "v"));
  EXPECT_FALSE(AssertBarriers("s").ok());
  EXPECT_TRUE(Barrier(Proceeding(20s)).satisfied());
  EXPECT_TRUE(Barrier(Proceeding(20s)).satisfied());
  EXPECT_TRUE(AssertBarriers("s", 2).ok());
  EXPECT_FALSE(AssertBarriers("s", 3).ok());
}

// BAR-1: what joins later is not waited for.
TEST_F(BarrierTest, WhatJoinsTheScopeWhileABarrierWaitsIsNotWaitedFor) {
  const WriteId first = At("posts", "e", 1);
  const auto there = std::make_shared<std::atomic<bool>>(false);
  MakeFakeStore("posts", {MakeFake("p", [first, there](Span<const WriteId> ids, Server&) -> Answers {
                  std::vector<Visibility> answers;
                  for (const WriteId& id : ids) {
                    answers.push_back(*there && id == first ? Visibility::Visible() : Visibility::NotYet());
                  }
                  return answers;
                })});
  const Scope scope{Lineage(first)};
  auto waiting = BarrierAsync(Proceeding(30s));
  Until([] { return FindStore("posts").value()->impl().parked() == 1; });
  scope->Append(At("posts", "f", 1));
  *there = true;
  EXPECT_TRUE(waiting.get().satisfied());
  EXPECT_FALSE(Barrier(Proceeding(50ms)).satisfied());
  EXPECT_TRUE(Barrier(Lineage(first), Proceeding(20s)).satisfied()) << "the one that was given, not the scope's";
}

}  // namespace
}  // namespace antipode::testing
