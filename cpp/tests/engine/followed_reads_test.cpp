// Reads in dry-run: followed in the background, behind or stale, confirmed or not (spec REC).
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/memory.h"
#include "antipode/messages.h"
#include "diagnostics/following.h"
#include "engine/followed_reads_test.h"
#include "store/server.h"

namespace antipode::testing {
namespace {

const std::string kHere = "engine/followed_reads_test.cpp:";

// REC-6, REC-7, REC-8, REC-12, REC-14: the same read returned something else once the write was there.
TEST_F(FollowedReadsTest, AReadOfWhatHasNotComeIsStale) {
  for (const Versions versions : {Versions::kPosition, Versions::kObject, Versions::kOpaque}) {
    const Isolated isolated;
    std::filesystem::remove_all(folder_);
    Be(Mode::kDryRun);
    MemoryOptions options;
    options.name = "posts";
    options.lag = 500ms;
    options.versions = versions;
    MemoryStore store(options);
    MemoryClient writer = store.Client("a");
    MemoryClient reader = store.Client("b");
    MessageOptions message;
    message.queue = "notifications";
    const Scope scope = MessageScope("", message);
    ASSERT_TRUE(writer.Set("private-key", "private-value").ok());
    EXPECT_EQ(reader.Get("private-key").value, std::nullopt);
    const int line = __LINE__ - 1;
    const Json record = Finding();
    EXPECT_EQ(record.at("kind"), "stale");
    EXPECT_EQ(record.at("confirmed"), "repeat");
    EXPECT_EQ(record.at("site"), kHere + std::to_string(line));
    EXPECT_EQ(record.at("origin").at("scope"), "message");
    EXPECT_EQ(record.at("origin").at("store"), "notifications");
    EXPECT_EQ(record.at("origin").at("opened_by").get<std::string>().find(kHere), 0U);
    EXPECT_EQ(record.at("store"), "posts");
    EXPECT_EQ(record.at("store_kind"), "memory");
    EXPECT_EQ(record.at("server"), "memory://posts/b");
    EXPECT_GT(record.at("visible_after").get<double>(), 0.03);
    EXPECT_LT(record.at("visible_after").get<double>(), 20.0);
    EXPECT_EQ(record.dump().find("private"), std::string::npos);
    EXPECT_EQ(record.contains("wanted"), versions != Versions::kOpaque);
    if (versions == Versions::kPosition) {
      EXPECT_EQ(record.at("wanted").at("epoch"), record.at("seen").at("epoch"));
      EXPECT_EQ(std::stoll(record.at("wanted").at("counter").get<std::string>()),
                std::stoll(record.at("seen").at("counter").get<std::string>()) + 1);
    }
  }
}

// REC-14: the value carries its version, exactly; nothing is repeated, and the value may be the same.
TEST_F(FollowedReadsTest, AnObjectIsStaleByItsOwnVersion) {
  SettingWords words = Words(Mode::kDryRun);
  words.repeat_reads = false;
  Set(words);
  MemoryOptions options;
  options.name = "posts";
  options.lag = 500ms;
  options.versions = Versions::kObject;
  MemoryStore store(options);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  ASSERT_TRUE(writer.Set("k", "v").ok());
  Until([&] { return reader.Get("k").value.has_value(); });
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  EXPECT_EQ(reader.Get("k").value, "v");
  const Json record = Finding();
  EXPECT_EQ(record.at("kind"), "stale");
  EXPECT_EQ(record.at("confirmed"), "version");
  EXPECT_LT(std::stoull(record.at("seen").at("counter").get<std::string>()),
            std::stoull(record.at("wanted").at("counter").get<std::string>()));
  EXPECT_GT(record.at("visible_after").get<double>(), 0.03);
}

// REC-6.
TEST_F(FollowedReadsTest, WhatReturnsTheSameLaterIsBehindAndNotStale) {
  MemoryStore store("posts", {"a", "b"}, 500ms);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  EXPECT_EQ(reader.Get("another").value, std::nullopt);
  EXPECT_EQ(Finding().at("kind"), "behind");
  EXPECT_EQ(Counted("behind"), 1U);
  EXPECT_EQ(Counted("stale"), 0U);
}

// REC-14.
TEST_F(FollowedReadsTest, WithoutARepeatNothingIsConfirmed) {
  for (const std::string way : {"switched off", "cannot be compared", "the repeat fails", "the repeat throws"}) {
    const Isolated isolated;
    std::filesystem::remove_all(folder_);
    SettingWords words = Words(Mode::kDryRun);
    words.repeat_reads = way != "switched off";
    Set(words);
    const auto store = MakeFakeStore("posts", {MakeFake("p", Later(50ms))});
    std::atomic<bool> repeated{false};
    const Scope scope(Lineage(At("posts", "e", 1)));
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    FollowedRead::Came came;
    came.value = way == "cannot be compared" ? [] { return std::optional<std::string>(); } : Text("old");
    came.repeat = [&]() -> std::optional<std::string> {
      repeated = true;
      if (way == "the repeat throws") throw std::runtime_error("gone");
      return std::nullopt;
    };
    followed->Over(store->Servers().front(), came);
    EXPECT_EQ(Finding().at("kind"), "behind") << way;
    EXPECT_EQ(repeated, way == "the repeat fails" || way == "the repeat throws") << way;
  }
}

// REC-14: nothing that reads is kept for longer than it takes.
TEST_F(FollowedReadsTest, NothingIsKept) {
  for (const bool comes : {true, false}) {
    const Isolated isolated;
    std::filesystem::remove_all(folder_);
    Be(Mode::kDryRun);
    if (!comes) following::SetFollowFor(100ms);
    auto kept = std::make_shared<std::string>("new");
    const std::weak_ptr<std::string> seen = kept;
    FollowedRead::Came came;
    came.value = Text("old");
    came.repeat = [kept] { return std::optional<std::string>(*kept); };
    kept.reset();
    const auto store = MakeFakeStore("posts", {MakeFake("p", comes ? Later(100ms) : Always(Visibility::NotYet()))});
    {
      const Scope scope(Lineage(At("posts", "e", 1)));
      Begin(store)->Over(store->Servers().front(), std::exchange(came, {}));
    }
    EXPECT_EQ(Finding().at("kind"), comes ? "stale" : "behind");
    Until([&] { return seen.expired(); });
    following::SetFollowFor(30s);
  }
}

// REC-14: a longer result is not compared.
TEST_F(FollowedReadsTest, WhatIsTooLongIsNotCompared) {
  const auto store = MakeFakeStore("posts", {MakeFake("p", Later(20ms))});
  const Scope scope(Lineage(At("posts", "e", 1)));
  const auto followed = Begin(store);
  ASSERT_NE(followed, nullptr);
  followed->Over(store->Servers().front(), {Text(std::string(FollowedRead::kMostOctets + 1, 'x')), Text("other"), {}});
  EXPECT_EQ(Finding().at("kind"), "behind");
}

// REC-14: one that is still missing would make the comparison say nothing.
TEST_F(FollowedReadsTest, NoRepeatBeforeAllIsThere) {
  following::SetFollowFor(200ms);
  const auto store = MakeFakeStore("posts", {MakeFake("p", [](Span<const WriteId> ids, Server&) {
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      answers.push_back(id.ordered()->epoch == "e" ? Visibility::Visible() : Visibility::NotYet());
    }
    return Answers(answers);
  })});
  std::atomic<int> repeats{0};
  const Scope scope(Lineage(std::vector<WriteId>{At("posts", "e", 1), At("posts", "f", 2)}));
  const auto followed = Begin(store);
  ASSERT_NE(followed, nullptr);
  FollowedRead::Came came{Text("old"), [&] { return ++repeats, std::optional<std::string>("new"); }, {}};
  followed->Over(store->Servers().front(), came);
  const Json record = Finding();
  following::SetFollowFor(30s);
  EXPECT_EQ(record.at("kind"), "behind");
  EXPECT_TRUE(record.at("visible_after").is_null());
  EXPECT_EQ(record.at("wanted"), (Json{{"epoch", "f"}, {"counter", "2"}}));
  EXPECT_EQ(repeats, 0);
}

// REC-13, REC-20: what cannot be proved, and a server that does not answer, are none; they are counted.
TEST_F(FollowedReadsTest, OnlyNotYetIsAFinding) {
  following::SetFollowFor(200ms);
  Visibility unknown = Visibility::NotYet("?");
  unknown.unknown_epoch = true;
  unsigned judged = 1;  // the first one
  for (const Ask& answer :
       {Always(Visibility::Visible()), Always(Visibility::Unproven("ended")), Always(unknown),
        Always(Visibility::Unanswered("it is recovering")), Down()}) {
    const Isolated isolated;
    Be(Mode::kDryRun);
    const auto store = MakeFakeStore("posts", {MakeFake("p", answer)});
    const Scope scope(Lineage(At("posts", "e", 1)));
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    followed->Over(store->Servers().front(), {Text(""), Text("other"), {}});
    UntilNothingIsFollowed();
    EXPECT_EQ(Counted("followed_reads"), 1U);
    EXPECT_EQ(Counted("behind") + Counted("stale"), 0U);
    EXPECT_EQ(Counted("unjudged_reads"), 1U - judged);
    judged = 0;
  }
  following::SetFollowFor(30s);
  EXPECT_TRUE(Now("behind").empty());
}

// REC-13, BAR-29: never invented. This shim proves no more than what it is asked, so that one answer says nothing of
// another.
TEST_F(FollowedReadsTest, APositionBehindAnotherThatIsThereIsAskedForByItself) {
  const auto store = MakeFakeStore("posts", {MakeFake("p", [](Span<const WriteId> ids, Server&) {
    std::this_thread::sleep_for(20ms);  // so that the reads come together
    return Answers(std::vector(ids.size(), Visibility::Visible()));
  })});
  for (std::uint64_t counter = 1; counter < 30; ++counter) {
    const Scope scope(Lineage(At("posts", "e", counter)));
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    followed->Over(store->Servers().front());
  }
  UntilNothingIsFollowed();
  EXPECT_EQ(Counted("behind"), 0U);
  EXPECT_EQ(Counted("followed_reads"), 29U);
}

// REC-21: it moves with every question, and could push.
TEST_F(FollowedReadsTest, WhereNobodyWaitsAServerIsAskedAtLeisure) {
  Be(Mode::kDryRun);
  ManyPushes::opened = 0;
  std::mutex mutex;
  std::vector<TimePoint> asked_at;
  const auto store = MakeFakeStore<PushingShim>("posts", {MakeFake("p", [&](Span<const WriteId> ids, Server& server) {
    const std::lock_guard<std::mutex> lock(mutex);
    asked_at.push_back(Clock::now());
    server.Applied("i", "f", {{"f", asked_at.size()}});
    return Answers(std::vector(ids.size(), asked_at.size() > 13 ? Visibility::Visible() : Visibility::NotYet()));
  })});
  std::atomic<bool> seen{false};
  ASSERT_NE(following::Follow({{store->Servers().front(), *WriteId::Position("posts", "e", 1)}},
                              [&](const following::Writes&) { seen = true; }),
            nullptr);
  Until([&] { return seen.load(); });
  const std::lock_guard<std::mutex> lock(mutex);
  EXPECT_GT(asked_at.at(12) - asked_at.at(2), 150ms) << "from 5 ms on, a quarter more each time";
  EXPECT_EQ(ManyPushes::opened, 0) << "no push of every change, for a record";
}

// REC-21, BAR-38: by the store's push, whoever was there before.
TEST_F(FollowedReadsTest, ABarrierBesideWhatIsFollowedWaitsAsEver) {
  Be(Mode::kEnforce);
  ManyPushes::pushed = 0;
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore<PushingShim>("posts", {fake});
  std::atomic<bool> seen{false};
  ASSERT_NE(following::Follow({{store->Servers().front(), *WriteId::Position("posts", "e", 1)}},
                              [&](const following::Writes&) { seen = true; }),
            nullptr);
  Until([&] { return fake->asked > 2; });
  auto waiting = BarrierAsync(Lineage(At("posts", "e", 2)), Proceeding(20s));
  Until([] { return ManyPushes::pushed > 20; });
  const int asked = fake->asked;
  Until([&] { return fake->asked > asked; });
  EXPECT_EQ(waiting.wait_for(0ms), std::future_status::timeout);
  fake->Set(Always(Visibility::Visible()));
  EXPECT_TRUE(waiting.get().satisfied());
  Until([&] { return seen.load(); });
}

// A look that nobody answered holds nothing: neither a server that is gone, nor more and more while one is down.
TEST_F(FollowedReadsTest, WhatIsGivenUpKeepsNoServer) {
  following::SetFollowFor(50ms);
  std::weak_ptr<Server> server;
  {
    const Isolated isolated;
    Be(Mode::kDryRun);
    const auto store = MakeFakeStore("posts", {MakeFake("p", Down())});
    const Scope scope(Lineage(At("posts", "e", 1)));
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    followed->Over(store->Servers().front());
    UntilNothingIsFollowed();
    server = store->Servers().front();
  }
  following::SetFollowFor(30s);
  EXPECT_TRUE(server.expired());
}

// REC-13: the overload rule speaks of barriers that wait. What is recorded is what the server said.
TEST_F(FollowedReadsTest, WaitsThatTimedOutBeforeAreNoFindingOfALaterRead) {
  Be(Mode::kEnforce);
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore("posts", {fake});
  for (int wait = 0; wait < 6; ++wait) {
    EXPECT_FALSE(Barrier(Lineage(Object("posts", "k")), Proceeding(20ms)).satisfied());
  }
  BarrierOptions patient = Proceeding(20s);
  std::thread crowd([&] { static_cast<void>(Barrier(Lineage(Object("posts", "another")), patient)); });
  Until([&] { return store->Servers().front()->impl().Waiting() > 0; });
  fake->Set([](Span<const WriteId> ids, Server&) {
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      answers.push_back(id.key() == "read" ? Visibility::Visible() : Visibility::NotYet());
    }
    return Answers(answers);
  });
  Be(Mode::kDryRun);
  {
    const Scope scope(Lineage(Object("posts", "read")));
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    followed->Over(store->Servers().front());
    UntilNothingIsFollowed();
  }
  EXPECT_EQ(Counted("behind"), 0U);
  fake->Set(Always(Visibility::Visible()));
  crowd.join();
}

// And the other way round: what is only recorded makes no barrier fail early.
TEST_F(FollowedReadsTest, WhatIsGivenUpInTheBackgroundIsNoTimeoutOfABarrier) {
  following::SetFollowFor(20ms);
  const auto fake = MakeFake("p", Always(Visibility::NotYet()));
  const auto store = MakeFakeStore("posts", {fake});
  for (int number = 0; number < 8; ++number) {
    const Scope scope(Lineage(Object("posts", "k")));
    const auto followed = Begin(store);
    ASSERT_NE(followed, nullptr);
    followed->Over(store->Servers().front());
    UntilNothingIsFollowed();
  }
  following::SetFollowFor(30s);
  Be(Mode::kEnforce);
  std::thread crowd([&] { static_cast<void>(Barrier(Lineage(Object("posts", "another")), Proceeding(20s))); });
  Until([&] { return store->Servers().front()->impl().Waiting() > 0; });
  fake->Set(Later(100ms));
  EXPECT_TRUE(Barrier(Lineage(Object("posts", "k")), Proceeding(20s)).satisfied());
  crowd.join();
}

// REC-12.
TEST_F(FollowedReadsTest, WhatTheScopeWroteAfterTheReadWasSentIsNoneOfItsLineage) {
  MemoryStore memory("posts", {"a", "b"}, 100ms);
  MemoryClient writer = memory.Client("a");
  static_cast<void>(memory.Client("b"));
  const auto store = FindStore("posts").value();
  const auto server = store->ServerAt("memory://posts/b");
  {
    const Scope scope;
    EXPECT_EQ(Begin(store), nullptr);
  }
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  Until([&] { return memory.Look("b", "k").has_value(); });
  const auto followed = Begin(store);
  ASSERT_NE(followed, nullptr);
  ASSERT_TRUE(writer.Set("k", "w").ok());
  followed->Over(server, {Text("v"), Text("w"), {}});
  UntilNothingIsFollowed();
  EXPECT_EQ(Counted("behind") + Counted("stale"), 0U);
}

// REC-13.
TEST_F(FollowedReadsTest, InAStoreOfObjectsOnlyThoseThatAreReadAreLookedAt) {
  MemoryOptions options;
  options.name = "posts";
  options.lag = 30s;
  options.versions = Versions::kObject;
  MemoryStore store(options);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  EXPECT_EQ(reader.Get("another").value, std::nullopt);
  EXPECT_EQ(Counted("reads"), 1U);
  EXPECT_EQ(Counted("followed_reads"), 0U);
}

// REC-12, BAR-48: neither `wait_on_read` nor a `Reading` with `after`.
TEST_F(FollowedReadsTest, ReadsThatWouldWaitDoNotInDryRun) {
  MemoryStore store("posts", {"a", "b"}, 30s);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b", StoreOptions("posts").WaitOnRead(true));
  Lineage lineage;
  {
    const Scope scope;
    ASSERT_TRUE(writer.Set("k", "v").ok());
    lineage = scope->lineage();
    EXPECT_TRUE(reader.Get("k").ok());
  }
  ReadingOptions options;
  options.after = lineage;
  const Reading reading(options);
  EXPECT_TRUE(store.Client("b").Get("k").ok());
  EXPECT_EQ(Counted("followed_reads"), 2U);
}

// MONKEY-6: a dry run, and a repeated read with it, makes a replica apply nothing.
TEST_F(FollowedReadsTest, InMonkeyModeFollowingAReadMakesNothingVisible) {
  MemoryOptions options;
  options.name = "posts";
  int chosen = 0;
  options.choice = [&](const StaleRead& read) { return ++chosen, read.most; };
  MemoryStore store(options);
  MemoryClient writer = store.Client("a");
  MemoryClient reader = store.Client("b");
  following::SetFollowFor(100ms);
  {
    const Scope scope;
    ASSERT_TRUE(writer.Set("k", "v").ok());
    EXPECT_EQ(reader.Get("k").value, std::nullopt);
    EXPECT_TRUE(Finding().at("visible_after").is_null());
  }
  following::SetFollowFor(30s);
  EXPECT_EQ(store.Look("b", "k"), std::nullopt);
  EXPECT_EQ(chosen, 1);
}

// REC-6: a correct run of many messages, each of which waits for what it reads, has none.
TEST_F(FollowedReadsTest, ReadsBehindABarrierAreNoFinding) {
  MemoryStore store("posts", {"a", "b", "c"}, 500us);
  MemoryClient writer = store.Client("a");
  MemoryClient readers[] = {store.Client("b"), store.Client("c")};
  constexpr int kMessages = 2000;
  for (int message = 0; message < kMessages; ++message) {
    std::string text;
    {
      const Scope scope;
      Be(Mode::kEnforce);
      ASSERT_TRUE(writer.Set("k" + std::to_string(message), "v").ok());
      text = Serialize().value();
    }
    const Scope scope = MessageScope(text);
    ASSERT_TRUE(Barrier(BarrierOptions().Timeout(20s)).satisfied());
    Be(Mode::kDryRun);
    EXPECT_EQ(readers[message % 2].Get("k" + std::to_string(message)).value, "v");
  }
  UntilNothingIsFollowed();
  EXPECT_EQ(Counted("followed_reads"), static_cast<std::uint64_t>(kMessages));
  EXPECT_EQ(Counted("behind") + Counted("stale"), 0U);
}

}  // namespace
}  // namespace antipode::testing
