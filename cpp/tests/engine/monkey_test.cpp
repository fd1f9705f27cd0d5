// Monkey mode: any version that a replica may show, and none that it may not (spec MONKEY).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "antipode/memory.h"
#include "antipode/messages.h"
#include "antipode/reading.h"
#include "antipode/scope.h"
#include "engine/fakes.h"
#include "memory/shim.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

constexpr Versions kKinds[] = {Versions::kPosition, Versions::kObject, Versions::kOpaque};

std::size_t Newest(const StaleRead& /*read*/) { return 0; }
std::size_t Stalest(const StaleRead& read) { return read.most; }

MemoryStore StoreOf(Versions versions, StaleChoice choice, std::vector<std::string> regions = {"a", "b"}) {
  MemoryOptions options;
  options.name = "s";
  options.regions = std::move(regions);
  options.versions = versions;
  options.choice = std::move(choice);
  return MemoryStore(options);
}

MemoryStore StoreOf(std::uint64_t seed, std::vector<std::string> regions) {
  MemoryOptions options;
  options.name = "s";
  options.regions = std::move(regions);
  options.monkey = true;
  options.seed = seed;
  return MemoryStore(options);
}

void Do(const MemoryReply& reply) { ASSERT_TRUE(reply.ok()) << reply.message; }

std::string Read(MemoryClient& client, const std::string& key) {
  const MemoryReply reply = client.Get(key);
  EXPECT_TRUE(reply.ok()) << reply.message;
  return reply.value.value_or("-");
}

void Wait() {
  const BarrierResult result = Barrier(BarrierOptions().Timeout(20s));
  ASSERT_TRUE(result.satisfied()) << result.Explain();
}

class MonkeyTest : public EngineTest {};

// The contract's vectors

Versions VersionsOf(const std::string& word) {
  return word == "position" ? Versions::kPosition : word == "object" ? Versions::kObject : Versions::kOpaque;
}

TEST(MonkeyVectors, Reads) {
  RunVectors("monkey-store", [](const Json& vector) {
    const Isolated isolated;
    SettingWords words;
    words.timeout = 20s;
    Set(words);
    const auto regions = vector.at("regions").get<std::vector<std::string>>();
    MemoryOptions options;
    options.name = "s";
    options.regions = regions;
    options.versions = VersionsOf(vector.at("versions").get<std::string>());
    options.monkey = true;
    options.seed = std::stoull(vector.at("seed").get<std::string>());
    MemoryStore store(options);
    std::map<std::string, MemoryClient> clients;
    for (const std::string& region : regions) clients.emplace(region, store.Client(region));
    MemoryClient& primary = clients.at(regions.front());
    const Scope scope;
    for (const Json& step : vector.at("steps")) {
      if (step.contains("set")) {
        Do(primary.Set(step.at("set").get<std::string>(), step.at("value").get<std::string>()));
      } else if (step.contains("delete")) {
        Do(primary.Delete(step.at("delete").get<std::string>()));
      } else if (step.contains("barrier")) {
        Wait();
      } else {
        ReadingOptions reading;
        if (step.contains("waits")) reading.after = scope->lineage();
        const Reading seen(reading);
        const Json& value = step.at("value");
        EXPECT_EQ(Read(clients.at(step.at("at").get<std::string>()), step.at("get").get<std::string>()),
                  value.is_null() ? "-" : value.get<std::string>())
            << step;
      }
    }
  });
}

// What is legal

TEST_F(MonkeyTest, EveryVersionCanBeRead_MONKEY_3) {
  for (const Versions versions : kKinds) {
    std::vector<std::string> seen;
    for (std::size_t behind = 0; behind < 5; ++behind) {
      const Isolated isolated;
      MemoryStore store = StoreOf(versions, [behind](const StaleRead& read) { return std::min(behind, read.most); });
      MemoryClient a = store.Client("a");
      MemoryClient b = store.Client("b");
      for (const char* value : {"1", "2", "", "3"}) {
        Do(*value == '\0' ? a.Delete("k") : a.Set("k", value));
        Do(a.Set("other", "x"));
      }
      seen.push_back(Read(b, "k"));
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"3", "-", "2", "1", "-"}));
  }
}

TEST_F(MonkeyTest, WhatWasReadIsNoChoiceAgain_MONKEY_2) {
  std::vector<std::pair<std::string, std::size_t>> choices;
  MemoryStore store = StoreOf(Versions::kPosition, [&](const StaleRead& read) {
    EXPECT_EQ(read.store + " " + read.region, "s b");
    choices.emplace_back(read.key, read.most);
    return read.key == "second" ? 0 : read.most;
  });
  MemoryClient a = store.Client("a");
  MemoryClient b = store.Client("b");
  Do(a.Set("first", "1"));
  Do(a.Set("second", "1"));
  Do(a.Set("first", "2"));
  EXPECT_EQ(Read(b, "first"), "-");
  EXPECT_EQ(Read(b, "second"), "1");  // and so the write of the first before it
  EXPECT_EQ(Read(b, "first"), "1");
  EXPECT_EQ(Read(b, "second"), "1");
  EXPECT_EQ(choices, (std::vector<std::pair<std::string, std::size_t>>{{"first", 2}, {"second", 1}, {"first", 1}}));
}

TEST_F(MonkeyTest, ThereIsNothingToChooseAtAPrimaryOrWhereNothingCanArrive_MONKEY_4) {
  MemoryStore store = StoreOf(Versions::kObject, [](const StaleRead& read) {
    ADD_FAILURE() << "there is nothing to choose: " << read.key << " in " << read.region;
    return std::size_t{0};
  });
  MemoryClient a = store.Client("a");
  MemoryClient b = store.Client("b");
  EXPECT_EQ(Read(b, "k"), "-");
  store.Freeze("b");
  Do(a.Set("k", "1"));
  EXPECT_EQ(Read(a, "k"), "1");
  EXPECT_EQ(Read(b, "k"), "-");
  store.Heal("b");
  EXPECT_EQ(store.Look("b", "k"), std::nullopt);
}

TEST_F(MonkeyTest, AReplicaOfAReplicaReadsWhatCanComeByThat_MONKEY_3) {
  MemoryStore store = StoreOf(Versions::kPosition, Newest, {"a", "b", "c"});
  MemoryClient a = store.Client("a");
  const MemoryClient b = store.Client("b");
  MemoryClient c = store.Client("c");
  store.Repoint("c", "b");
  Do(a.Set("k", "1"));
  EXPECT_EQ(Read(c, "k"), "1");
  EXPECT_EQ(store.Look("b", "k"), "1");
  store.Freeze("b");
  Do(a.Set("k", "2"));
  EXPECT_EQ(Read(c, "k"), "1");
  store.Heal("b");
  const Scope scope;
  Do(a.Set("k", "3"));
  Wait();
  EXPECT_EQ(store.Look("b", "k"), "3");
  EXPECT_EQ(store.Look("c", "k"), "3");
}

// Waiting, and only looking

TEST_F(MonkeyTest, ABarrierLeavesNothingStaleOfWhatItWaitedForAndBringsNoMore_MONKEY_5) {
  for (const Versions versions : kKinds) {
    const Isolated isolated;
    MemoryStore store = StoreOf(versions, Stalest);
    MemoryClient a = store.Client("a");
    MemoryClient b = store.Client("b");
    store.Put("k", "0");
    const Scope scope;
    Do(a.Set("k", "1"));
    EXPECT_EQ(Read(b, "k"), "-");
    if (versions != Versions::kOpaque) store.Put("k", "2");  // what was overwritten there proves nothing
    store.Put("later", "x");
    Wait();
    EXPECT_EQ(Read(b, "k"), "1");
    EXPECT_EQ(store.Look("b", "later"), std::nullopt);
  }
}

TEST_F(MonkeyTest, AReadThatWaitsAndABarrierThatBlocksNobodyWait_MONKEY_5) {
  MemoryStore store = StoreOf(Versions::kObject, Stalest);
  MemoryClient a = store.Client("a");
  MemoryClient b = store.Client("b", StoreOptions("s").WaitOnRead(true).Timeout(20s));
  const Scope scope;
  Do(a.Set("k", "1"));
  EXPECT_EQ(Read(b, "k"), "1");
  Do(a.Set("k", "2"));
  EXPECT_TRUE(BarrierAsync(BarrierOptions().Timeout(20s)).get().satisfied());
  EXPECT_EQ(store.Look("b", "k"), "2");
}

// Tells of questions for which nobody waits.
std::atomic<int> unawaited{0};

class ToldShim : public memory::Monkey<memory::PositionShim> {
 public:
  Answers Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds timeout) override {
    Answers answers = memory::Monkey<memory::PositionShim>::Wait(ids, server, timeout);
    if (!server.Awaited()) ++unawaited;
    return answers;
  }
};

// With a deadline of zero, in dry-run, and after a barrier has given up.
TEST_F(MonkeyTest, LookingBringsNothing_MONKEY_6) {
  MemoryStore store = StoreOf(Versions::kPosition, Stalest);
  store.SetShim(ShimType::Of<ToldShim>("memory"));
  MemoryClient a = store.Client("a");
  MemoryClient b = store.Client("b");
  const Scope scope;
  Do(a.Set("k", "1"));
  EXPECT_FALSE(Barrier(Proceeding(0s)).satisfied());
  EXPECT_TRUE(Barrier(BarrierOptions().DryRun()).satisfied());
  store.Freeze("b");
  EXPECT_FALSE(Barrier(Proceeding(50ms)).satisfied());
  store.Heal("b");
  const int before = unawaited.load();
  Until([&] { return unawaited.load() >= before + 2; });  // the prober, and what is followed
  EXPECT_EQ(Read(b, "k"), "-");
  Wait();
  EXPECT_EQ(Read(b, "k"), "1");
}

TEST_F(MonkeyTest, ALostWriteIsNoPass_MONKEY_2) {
  for (const Versions versions : kKinds) {
    const Isolated isolated;
    MemoryStore store = StoreOf(versions, Newest);
    MemoryClient a = store.Client("a");
    const MemoryClient b = store.Client("b");
    const Scope scope;
    Do(a.Set("k", "1"));
    store.Promote("b", 1);
    EXPECT_FALSE(Barrier(Proceeding(300ms)).satisfied());
  }
}

// A unit test of a service, by rapidcheck

std::string Publish(MemoryClient& posts) {
  const Scope scope;
  Do(posts.Set("acl:42", "friends"));
  Do(posts.Set("post:42", "draft"));
  Do(posts.Set("post:42", "hi"));
  return Serialize().value();
}

std::string Follow(MemoryClient& posts, const std::string& message, bool waits) {
  const Scope scope = MessageScope(message);
  if (waits) Wait();
  Read(posts, "acl:42");
  Read(posts, "post:41");
  return Read(posts, "post:42");
}

rc::detail::TestResult CheckServices(bool waits) {
  rc::detail::TestParams params;
  params.seed = 1;
  rc::detail::TestMetadata metadata;
  return rc::detail::checkTestable(
      [waits] {
        const Isolated isolated;
        MemoryStore store = StoreOf(Versions::kPosition, [](const StaleRead& read) {
          return *rc::gen::inRange<std::size_t>(0, read.most + 1);
        });
        MemoryClient a = store.Client("a");
        MemoryClient b = store.Client("b");
        for (int time = 0; time < 3; ++time) RC_ASSERT(Follow(b, Publish(a), waits) == "hi");
      },
      metadata, params);
}

TEST(MonkeyProperties, WithoutABarrierItFailsAndShrinksToOneStaleRead_MONKEY_7) {
  rc::detail::TestResult result = CheckServices(false);
  rc::detail::FailureResult failure;
  ASSERT_TRUE(result.match(failure));
  std::vector<std::string> stale;
  for (const auto& [type, value] : failure.counterExample) {
    if (value != "0") stale.push_back(value);
  }
  EXPECT_EQ(stale, std::vector<std::string>{"1"});
}

TEST(MonkeyProperties, WithTheBarrierItNeverFails_MONKEY_5) {
  rc::detail::TestResult result = CheckServices(true);
  rc::detail::SuccessResult success;
  EXPECT_TRUE(result.match(success));
}

// Seeds and threads

std::vector<std::vector<std::string>> ReadFifty(std::uint64_t seed, std::launch how) {
  const Isolated isolated;
  MemoryStore store = StoreOf(seed, {"a", "b", "c", "d"});
  MemoryClient a = store.Client("a");
  for (int number = 0; number < 50; ++number) Do(a.Set("k" + std::to_string(number), "v"));
  std::vector<std::future<std::vector<std::string>>> reads;
  for (const char* region : {"b", "c", "d"}) {
    reads.push_back(std::async(how, [client = store.Client(region)]() mutable {
      std::vector<std::string> values;
      for (int number = 0; number < 50; ++number) values.push_back(Read(client, "k" + std::to_string(number)));
      return values;
    }));
  }
  std::vector<std::vector<std::string>> all;
  for (auto& each : reads) all.push_back(each.get());
  return all;
}

TEST(MonkeySeeds, RepeatThemselvesWhateverOtherRegionsReadAndDiffer_MONKEY_8) {
  std::set<std::vector<std::vector<std::string>>> seen;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, UINT64_MAX}) {
    const auto alone = ReadFifty(seed, std::launch::deferred);
    EXPECT_EQ(ReadFifty(seed, std::launch::async), alone);
    seen.insert(alone);
  }
  EXPECT_EQ(seen.size(), 4U);
}

// Mistakes

// The child begins a thread, which ThreadSanitizer forbids behind a mere fork: it is this program anew.
class MonkeyDeathTest : public MonkeyTest {
 protected:
  MonkeyDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  ~MonkeyDeathTest() override { GTEST_FLAG_SET(death_test_style, "fast"); }
};

TEST_F(MonkeyDeathTest, ThereIsNoLag_MONKEY_1) {
  MemoryOptions options;
  options.name = "s";
  options.monkey = true;
  options.lag = 80ms;
  EXPECT_DEATH(MemoryStore{options}, "no clock");
  EXPECT_DEATH(StoreOf(Versions::kPosition, Newest).SetLag("b", 80ms), "no clock");
}

TEST_F(MonkeyDeathTest, AnAnswerOutOfRangeIsRefused_MONKEY_7) {
  EXPECT_DEATH(
      {
        MemoryStore store = StoreOf(Versions::kPosition, [](const StaleRead& read) { return read.most + 1; });
        MemoryClient b = store.Client("b");
        store.Put("k", "1");
        static_cast<void>(b.Get("k"));
      },
      "2 versions behind the newest, want 0 .the newest. to 1");
}

}  // namespace
}  // namespace antipode::testing
