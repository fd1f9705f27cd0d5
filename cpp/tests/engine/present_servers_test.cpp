// A pass speaks of the servers that are known when it is given: they may change while a barrier waits (BAR-65).
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/barrier_waits.h"
#include "engine/discovery.h"
#include "engine/fakes.h"
#include "engine/judgement.h"
#include "engine/log_test.h"
#include "engine/waiting.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

using Names = std::vector<std::string>;

enum class Form { kBlocking, kFuture, kCallback };

class PresentServersTest : public EngineTest {
 protected:
  PresentServersTest() {
    SettingWords words;
    words.poll = 5ms;
    Set(words);
    store_ = JoinStore(ShimType::Of<FakeShim>("fake"), options_).value();
  }

  void Use(const FakePtr& fake) { store_->UseServer(options_, std::any(fake)); }

  static Names Judged(const BarrierResult& result) {
    Names names;
    for (const ServerResult& server : result.store("s").servers) {
      if (!server.left_out) names.push_back(server.address);
    }
    return names;
  }

  // A barrier for the write, which names the servers that are known now.
  static std::unique_ptr<Plan> Planned(Duration timeout) {
    const Lineage wanted(Object("s", "k"));
    Result<Plan> plan = MakePlan(nullptr, &wanted, Proceeding(timeout), Site());
    EXPECT_TRUE(plan.ok());
    return std::make_unique<Plan>(*std::move(plan));
  }

  // Has each of them show the write.
  static std::shared_ptr<WaitGroup> Shown(BarrierWaits& waits) {
    auto group = waits.Begin();
    for (const auto& [server, write_id] : waits.plan().Wanted()) group->Add(*write_id, server);
    EXPECT_TRUE(group->Parked());
    const Visibility shown = Visibility::Visible();
    for (PendingWait& need : group->needs) {
      const Proof proof{Clock::now(), need.server->impl().generation()};
      group->Settle(need, &shown, &proof);
    }
    return group;
  }

  const StoreOptions options_{"s"};
  const FakePtr late_ = MakeFake("late", Always(Visibility::NotYet()));
  const FakePtr joined_ = MakeFake("joined", Always(Visibility::NotYet()));
  std::shared_ptr<Store> store_;
};

class PresentServersFormsTest : public PresentServersTest, public ::testing::WithParamInterface<Form> {
 protected:
  std::future<BarrierResult> Wait(BarrierOptions options) const {
    const Lineage wanted(Object("s", "k"));
    if (GetParam() == Form::kFuture) return BarrierAsync(wanted, options);
    auto promise = std::make_shared<std::promise<BarrierResult>>();
    std::future<BarrierResult> result = promise->get_future();
    if (GetParam() == Form::kCallback) {
      BarrierAsync(wanted, options, [promise](BarrierResult came) { promise->set_value(std::move(came)); });
      return result;
    }
    std::thread([promise, wanted, options] { promise->set_value(Barrier(wanted, options)); }).detach();
    return result;
  }

  // The same, and it is parked.
  std::future<BarrierResult> Parked(const BarrierOptions& options) const {
    auto waiting = Wait(options);
    Until([&] { return store_->impl().parked() == 1; }, 60s);
    return waiting;
  }

  static bool IsDone(const std::future<BarrierResult>& waiting) {
    return waiting.wait_for(0s) == std::future_status::ready;
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, PresentServersFormsTest,
                         ::testing::Values(Form::kBlocking, Form::kFuture, Form::kCallback));

// BAR-65: however it came to be known.
TEST_P(PresentServersFormsTest, AServerThatJoinsWhileABarrierWaitsIsWaitedFor) {
  Use(late_);
  auto waiting = Parked(Proceeding(60s));
  Use(joined_);
  const TimePoint began = Clock::now();
  late_->Set(Always(Visibility::Visible()));
  Until([&] { return joined_->asked >= 2 || IsDone(waiting); }, 60s);
  EXPECT_FALSE(IsDone(waiting));
  const Duration waited = Clock::now() - began;
  joined_->Set(Always(Visibility::Visible()));
  const BarrierResult result = waiting.get();
  EXPECT_TRUE(result.complete()) << result.Explain();
  EXPECT_EQ(Judged(result), (Names{"late", "joined"}));
  EXPECT_GE(result.waited(), waited);
  EXPECT_EQ(store_->impl().parked(), 0);
}

// BAR-65: under the barrier's own deadline.
TEST_P(PresentServersFormsTest, AServerThatJoinsIsNoPassBeforeItShowsTheWrite) {
  Use(late_);
  for (const Reach reach : {Reach::kRegion, Reach::kReplica}) {
    late_->Set(Always(Visibility::NotYet()));
    auto waiting = Parked(Proceeding(1s).Reach(reach));
    const FakePtr joins = MakeFake("joins for " + std::string(ToString(reach)), Always(Visibility::NotYet()));
    Use(joins);
    late_->Set(Always(Visibility::Visible()));
    const BarrierResult result = waiting.get();
    EXPECT_FALSE(result.satisfied());
    EXPECT_EQ(result.store("s").verdict, Verdict::kTimedOut);
    EXPECT_NE(result.store("s").reason.find("joins"), std::string::npos) << result.Explain();
    joins->Set(Always(Visibility::Visible()));
  }
}

// BAR-65, BAR-54: though it had shown the write.
TEST_P(PresentServersFormsTest, AServerThatLeftWhileAnotherOneWasWaitedForIsNamed) {
  Use(late_);
  const FakePtr there = MakeFake("there", Always(Visibility::Visible()));
  constexpr int kNoSocket = -1;  // one that nobody can look at
  auto lead = store_->Reach(nullptr, options_, std::any(there), "there", kNoSocket);
  auto waiting = Parked(Proceeding(60s));
  Until([&] { return there->asked > 0; }, 60s);
  lead->End();
  discovery::refresh.store(Duration::zero());
  Until([&] { return store_->Servers().size() == 1; }, 60s);
  discovery::refresh.store(5s);
  late_->Set(Always(Visibility::Visible()));
  const BarrierResult result = waiting.get();
  EXPECT_TRUE(result.satisfied()) << result.Explain();
  EXPECT_FALSE(result.complete());
  EXPECT_EQ(Judged(result), Names{"late"});
  EXPECT_EQ(result.store("s").LeftOut(), Names{"there"});
}

// BAR-65: each one shows the write, and by then there is another.
TEST_P(PresentServersFormsTest, ServersThatChangeUntilTheDeadlineAreNoPass) {
  std::atomic<int> count{0};
  std::function<FakePtr()> make = [&] {
    return MakeFake("server" + std::to_string(count++), [&](Span<const WriteId> ids, Server&) {
      Use(make());
      return Answers(std::vector(ids.size(), Visibility::Visible()));
    });
  };
  Use(make());
  const TimePoint began = Clock::now();
  const BarrierResult result = Wait(Proceeding(500ms)).get();
  EXPECT_FALSE(result.satisfied());
  EXPECT_EQ(result.store("s").verdict, Verdict::kTimedOut);
  EXPECT_GE(Clock::now() - began, 490ms);
  EXPECT_GT(count, 2);
  store_->impl().Retire();  // its threads call what stands here
}

// BAR-65, BAR-59: in a sentence.
TEST_F(PresentServersTest, AServerThatJoinsAsTheTimeIsOverIsNamed) {
  Use(late_);
  BarrierWaits waits(Planned(1ms));
  const auto group = Shown(waits);
  Until([&] { return Clock::now() >= DeadlineOf(*group); }, 60s);
  Use(joined_);
  EXPECT_TRUE(waits.Take());
  const StoreResult found = JudgeStores(waits.plan(), *group, 0s, false).at("s");
  EXPECT_EQ(found.verdict, Verdict::kTimedOut);
  EXPECT_NE(found.reason.find("changed until the deadline"), std::string::npos) << found.reason;
}

// BAR-65, BAR-61: where memory fails before the wait at those that joined has begun, and it is tried again.
TEST_F(PresentServersTest, AWaitThatCouldNotBeginIsDueStill) {
  Use(late_);
  BarrierWaits waits(Planned(60s));
  Shown(waits);
  Use(joined_);
  EXPECT_FALSE(waits.Take());
  EXPECT_FALSE(waits.Take());
  Shown(waits);
  EXPECT_TRUE(waits.Take());
}

// BAR-65, BAR-61: also of one that the wait was not parked at any more, whoever takes it for the last one.
TEST_F(PresentServersTest, AServerThatWasNotAskedIsNoPass) {
  Use(late_);
  BarrierWaits waits(Planned(60s));
  const auto group = Shown(waits);
  Use(joined_);
  EXPECT_FALSE(waits.Take());
  for (const auto& [looked, verdict] : {std::pair(false, Verdict::kTimedOut), std::pair(true, Verdict::kNotYet)}) {
    const StoreResult found = JudgeStores(waits.plan(), *group, 0s, looked).at("s");
    EXPECT_EQ(found.verdict, verdict);
    EXPECT_NE(found.reason.find("joined"), std::string::npos) << found.reason;
  }
}

// BAR-65, BAR-29: one that joined during the question is not passed over.
TEST_P(PresentServersFormsTest, ALookSpeaksOfTheServersOfItsEnd) {
  Use(MakeFake("first", [this](Span<const WriteId> ids, Server&) {
    Use(joined_);
    return Answers(std::vector(ids.size(), Visibility::Visible()));
  }));
  const BarrierResult result = Wait(Proceeding(0s)).get();
  EXPECT_FALSE(result.satisfied());
  EXPECT_EQ(result.store("s").verdict, Verdict::kNotYet);
  store_->impl().Retire();
}

// BAR-65: what left is no more waited for by a barrier that asks there once more (BAR-63) for what it had seen.
TEST_F(PresentServersTest, AServerThatLeftKeepsNobodyWhoComesBack) {
  SettingWords words;
  words.poll = 5ms;
  words.free_path_ttl = 0ms;
  Set(words);
  const FakePtr leaves = MakeFake("leaves", [](Span<const WriteId> ids, Server&) {
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) answers.push_back(id.key() == "k" ? Visibility::Visible() : Visibility::NotYet());
    return Answers(std::move(answers));
  });
  const auto has_left = std::make_shared<std::atomic<bool>>(false);
  const auto listed = store_->impl().ListBy([leaves, late = late_, has_left]() -> Result<Targets> {
    return has_left->load() ? Targets{late} : Targets{leaves, late};
  });
  ASSERT_TRUE(listed.ok());
  const auto servers = store_->Servers();
  ASSERT_EQ(servers.size(), 2U);
  auto other = BarrierAsync(Lineage(Object("s", "another")), Proceeding(60s));
  auto waiting = BarrierAsync(Lineage(Object("s", "k")), Proceeding(60s));
  Until([&] { return servers.front()->impl().Waiting() == 1 && servers.back()->impl().Waiting() == 2; }, 60s);
  leaves->Set(Always(Visibility::NotYet()));
  *has_left = true;
  const Duration refresh = discovery::refresh.exchange(Duration::zero());
  Until([&] { return store_->Servers().size() == 1; }, 60s);
  discovery::refresh.store(refresh);
  Until([&] { return servers.front()->impl().Waiting() == 0; }, 60s);  // the other one was told that it left
  std::this_thread::sleep_for(300ms);
  late_->Set(Always(Visibility::Visible()));
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  const BarrierResult result = waiting.get();
  EXPECT_TRUE(result.satisfied()) << result.Explain();
  EXPECT_EQ(result.store("s").LeftOut(), Names{"leaves"});
  EXPECT_TRUE(other.get().satisfied());
}

// BAR-32, BAR-65: also in a later wait, which then gives its place up.
TEST_F(PresentServersTest, ACallbackIsCancelledInItsSecondWait) {
  Use(late_);
  std::promise<BarrierResult> promise;
  Waiter waiter = BarrierAsync(Lineage(Object("s", "k")), Proceeding(60s),
                               [&](BarrierResult came) { promise.set_value(std::move(came)); });
  Until([&] { return store_->impl().parked() == 1; }, 60s);
  Use(joined_);
  late_->Set(Always(Visibility::Visible()));
  Until([&] { return joined_->asked >= 2; }, 60s);
  waiter.Cancel();
  EXPECT_FALSE(promise.get_future().get().satisfied());
  EXPECT_EQ(store_->impl().parked(), 0);
}

// BAR-32, BAR-65: though each server had shown the write by then, and whether another one joined meanwhile or not.
TEST_F(PresentServersTest, ACallbackThatIsCancelledBeforeItsResultIsThereIsNoPass) {
  Use(late_);
  for (const bool joins : {false, true}) {
    late_->Set(Always(Visibility::NotYet()));
    std::promise<BarrierResult> promise;
    Waiter waiter = BarrierAsync(Lineage(Object("s", "k")), Proceeding(60s),
                                 [&](BarrierResult came) { promise.set_value(std::move(came)); });
    Until([&] { return late_->asked > 0 && store_->impl().parked() == 1; }, 60s);
    std::promise<void> is_busy;
    std::promise<void> goes_on;
    BarrierAsync(Lineage(), Proceeding(60s), [&](const BarrierResult&) {
      is_busy.set_value();
      goes_on.get_future().wait();
    });
    is_busy.get_future().wait();
    late_->Set(Always(Visibility::Visible()));
    Until([&] { return !store_->Servers().front()->Awaited(); }, 60s);
    if (joins) Use(joined_);
    waiter.Cancel();
    goes_on.set_value();
    const BarrierResult result = promise.get_future().get();
    EXPECT_FALSE(result.satisfied()) << result.Explain();
    EXPECT_NE(result.store("s").reason.find("cancelled"), std::string::npos) << result.Explain();
    EXPECT_EQ(store_->impl().parked(), 0);
  }
}

}  // namespace
}  // namespace antipode::testing
