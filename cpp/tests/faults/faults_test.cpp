// What a barrier, a record and a list do where the n-th call for memory or for a thread fails: no false pass, no hang
// past the deadline, no crash, and all is whole behind it (BAR-61). FAULTS says for how many n (25).
#include "faults/faults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "diagnostics/following.h"
#include "diagnostics/records.h"
#include "diagnostics/repeats.h"
#include "engine/discovery.h"
#include "engine/fakes.h"
#include "engine/renewal_age.h"
#include "environment.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode::testing {
namespace {

long Times() {
  const char* said = std::getenv("FAULTS");
  return said == nullptr ? 25 : std::atol(said);
}

// Positions: a server has applied what its test says.
class LogServers : public EngineTest {
 protected:
  LogServers() {
    SettingWords words;
    words.free_path_ttl = 0ms;
    words.poll = 1ms;
    Set(words);
  }

  Ask Showing() {
    return [this](Span<const WriteId> ids, Server& server) {
      const std::uint64_t applied = applied_;
      server.Applied("i1", "e1", {{"e1", applied}});
      std::vector<Visibility> answers;
      for (const WriteId& id : ids) {
        const bool is_there = id.is_position() ? id.ordered()->counter <= applied : applied > 0;
        answers.push_back(is_there ? Visibility::Visible() : Visibility::NotYet("it is not there, as the server says"));
      }
      return Answers(std::move(answers));
    };
  }

  Lineage Lineages() const {
    return Lineage(std::vector<WriteId>{At("s", "e1", 5), At("s", "e1", 7), Object("s", "a key of some length"),
                                        Object("s", "another")});
  }

  // Whole again: what comes next passes, and nobody is waited for who has gone.
  void ExpectWhole() {
    Until([&] { return Barrier(Lineages(), Proceeding(1s)).satisfied(); }, 60s);
    for (const auto& server : store_->Servers()) {
      Until([&] { return server->impl().Waiting() == 0; }, 60s);
    }
    EXPECT_EQ(store_->impl().parked(), 0);
  }

  std::atomic<std::uint64_t> applied_{0};
  std::shared_ptr<Store> store_;
};

class MixedShim final : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Positions(); }
};

// What waits is released, or told that this process is in trouble, long before its deadline.
TEST_F(LogServers, ABarrierEndsWhateverHasNoMemory_BAR_61) {
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing()), MakeFake("two", Showing())});
  applied_ = 9;
  ExpectWhole();
  for (const long count : {1L, 20L}) {
    for (long number = 1; number <= Times(); ++number) {
      SCOPED_TRACE(std::to_string(number) + " of memory, " + std::to_string(count));
      applied_ = 0;
      std::vector<std::future<BarrierResult>> futures;
      std::thread blocked;
      std::promise<BarrierResult> blocked_result;
      futures.push_back(blocked_result.get_future());
      for (int each = 0; each < 3; ++each) futures.push_back(BarrierAsync(Lineages(), Proceeding(120s)));
      blocked = std::thread([&] { blocked_result.set_value(Barrier(Lineages(), Proceeding(120s))); });
      Until([&] { return store_->impl().parked() == 4; }, 60s);
      {
        const Fault fault(Lack::kMemory, number, count, "antipode");  // of the threads that ask, and release
        applied_ = 9;
        for (auto& future : futures) ASSERT_EQ(future.wait_for(60s), std::future_status::ready) << "a hang";
      }
      blocked.join();
      for (auto& future : futures) {
        const BarrierResult result = future.get();
        EXPECT_TRUE(result.satisfied() || result.store("s").verdict == Verdict::kUnproven) << result.Explain();
      }
      ExpectWhole();
    }
  }
}

TEST_F(LogServers, NoBarrierPassesByWhatHasNoMemory_BAR_61) {
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing()), MakeFake("two", Showing())});
  for (const long count : {1L, 20L}) {
    for (long number = 1; number <= Times(); ++number) {
      SCOPED_TRACE(std::to_string(number) + " of memory, " + std::to_string(count));
      applied_ = 0;
      {
        const Fault fault(Lack::kMemory, number, count);
        EXPECT_FALSE(Barrier(Lineages(), Proceeding(20ms)).satisfied());
        EXPECT_FALSE(BarrierAsync(Lineages(), Proceeding(20ms)).get().satisfied());
      }
      applied_ = 9;
      ExpectWhole();
    }
  }
}

// Parking itself: by the thread that asks for the barrier.
TEST_F(LogServers, WhatCannotBeParkedIsUnproven_BAR_61) {
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing()), MakeFake("two", Showing())});
  applied_ = 9;
  ExpectWhole();
  for (long number = 1; number <= 4 * Times(); ++number) {
    SCOPED_TRACE(std::to_string(number) + " of memory");
    const Lineage lineage = Lineages();
    const auto options = Proceeding(2s);
    try {
      const Fault fault(Lack::kMemory, number);
      const Counting counting;
      static_cast<void>(Barrier(lineage, options));
    } catch (const std::bad_alloc&) {  // the application's own thread is told so
      SUCCEED();
    }
    ExpectWhole();
  }
}

// REC-5, REC-15: what is followed ends, and its place is free again.
TEST_F(LogServers, WhatDryRunFollowsEnds_BAR_61) {
  following::SetFollowFor(50ms);
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing()), MakeFake("two", Showing())}, Mode::kDryRun);
  // Whatever this process lacks; and what the thread lacks that ends barriers, which does the following.
  for (const auto& [count, thread] : {std::pair(1L, "antipode-done"), {20L, "antipode-done"}, {1L, nullptr}}) {
    for (long number = 1; number <= Times(); ++number) {
      SCOPED_TRACE(std::to_string(number) + " of memory, " + std::to_string(count));
      applied_ = number % 2 == 0 ? 0 : 9;
      {
        const Fault fault(Lack::kMemory, number, count, thread);
        for (int each = 0; each < 3; ++each) static_cast<void>(Barrier(Lineages(), Proceeding(1s)));
        Until([] { return following::Followed() == 0; }, 60s);
      }
      EXPECT_EQ(following::Unanswered(), 0);
    }
  }
  following::SetFollowFor(30s);
}

class RenewingShim final : public FakeShim {
 public:
  Answers Visible(Span<const WriteId> ids, Server& server) override {
    if (!server.session.has_value()) server.session = ++opened;
    return FakeShim::Visible(ids, server);
  }
  bool Renews() const noexcept override { return true; }
  std::any Renew(const Server& /*server*/) override { return ++renewed; }

  static inline std::atomic<int> opened{0};
  static inline std::atomic<int> renewed{0};
};

// It answers to its end, and then the thread that asks opens one.
TEST_F(LogServers, AConnectionAnswersToItsEndWhereNoThreadOpensTheNextOne_BAR_69) {
  SettingWords words;
  words.reconnect = 600s;
  Set(words);
  store_ = MakeFakeStore<RenewingShim>("s", {MakeFake("one", Always(Visibility::Visible()))});
  ASSERT_TRUE(Barrier(Lineages(), Proceeding(60s)).satisfied());
  {
    const Fault fault(Lack::kThread, 1, 1000, "antipode");
    renewal::more_age = 570s;
    for (int times = 0; times < 5; ++times) EXPECT_TRUE(Barrier(Lineages(), Proceeding(60s)).satisfied());
    EXPECT_EQ(Fault::Failed(), 1) << "it is not tried again and again";
    EXPECT_EQ(RenewingShim::opened, 1);
    renewal::more_age = 600s;
    EXPECT_TRUE(Barrier(Lineages(), Proceeding(60s)).satisfied());
  }
  renewal::more_age = Duration::zero();
  EXPECT_GE(RenewingShim::opened, 2);
  EXPECT_EQ(RenewingShim::renewed, 0);
}

// BAR-53: whoever comes later has the list asked for, by a thread that begins anew.
TEST_F(LogServers, AListIsAskedForAgain_BAR_61) {
  discovery::refresh = 1ms;
  discovery::retry = 1ms;
  applied_ = 9;
  struct Listing {  // the thread that asks ends behind the test
    std::vector<FakePtr> all;
    std::atomic<int> asked{0};
    std::atomic<std::size_t> most{2};
  };
  const auto listing = std::make_shared<Listing>();
  listing->all = {MakeFake("one", Showing()), MakeFake("two", Showing())};
  store_ = JoinStore(ShimType::Of<MixedShim>("fake"), StoreOptions("s").ReplicasFrom([listing]() -> Result<Targets> {
             ++listing->asked;
             return Targets(listing->all.begin(), listing->all.begin() + static_cast<long>(listing->most.load()));
           })).value();
  for (const Lack lack : {Lack::kMemory, Lack::kThread}) {
    for (const long count : {1L, 20L}) {
      for (long number = 1; number <= Times(); ++number) {
        SCOPED_TRACE(std::to_string(number) + (lack == Lack::kMemory ? " of memory, " : " of threads, ") +
                     std::to_string(count));
        listing->most = number % 2 == 0 ? 1 : 2;
        {
          const Fault fault(lack, number, count);
          for (int each = 0; each < 3; ++each) {
            const std::unique_ptr<Counting> counting(lack == Lack::kThread ? new Counting : nullptr);
            static_cast<void>(Barrier(Lineages(), Proceeding(200ms)));
          }
        }
        const int before = listing->asked;
        Until([&] { return store_->replicas().size() == listing->most && listing->asked > before; }, 60s);
        ExpectWhole();
      }
    }
  }
  discovery::refresh = 5s;
  discovery::retry = 500ms;
}

// BAR-67: who waits for names is told at once that nobody asks for them.
TEST_F(LogServers, NamesThatNoThreadAsksForAreNotWaitedFor_BAR_61) {
  applied_ = 9;
  const auto fake = MakeFake("one", Showing());
  store_ = JoinStore(ShimType::Of<MixedShim>("fake"), StoreOptions("s").ReplicasFrom([fake]() -> Result<Targets> {
             return Targets{fake};
           })).value();
  ExpectWhole();
  const auto current = discovery::current.exchange(1ms);
  std::this_thread::sleep_for(20ms);
  for (const bool blocks : {true, false}) {
    SCOPED_TRACE(blocks);
    const TimePoint began = Clock::now();
    const Fault fault(Lack::kThread, 1);
    const Counting counting;
    const BarrierResult result =
        blocks ? Barrier(Lineages(), Proceeding(20s)) : BarrierAsync(Lineages(), Proceeding(20s)).get();
    EXPECT_EQ(Fault::Failed(), 1);
    EXPECT_LT(Clock::now() - began, 10s);
    EXPECT_FALSE(result.satisfied());
    EXPECT_EQ(result.store("s").kind, UnprovenKind::kOwnFault) << result.Explain();
  }
  discovery::current = current;
  ExpectWhole();
}

// BAR-32: whatever has no memory where an executor refuses its work.
TEST_F(LogServers, ACallbackIsCalledThoughAnExecutorRefuses_BAR_61) {
  applied_ = 9;
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing())});
  ExpectWhole();
  for (long number = 1; number <= 2 * Times(); ++number) {
    SCOPED_TRACE(std::to_string(number) + " of memory");
    std::promise<void> called;
    const auto options = Proceeding(20s).Executor([number](const std::function<void()>&) {
      throw std::runtime_error("no thread of the application's takes any more work, number " + std::to_string(number));
    });
    const Fault fault(Lack::kMemory, number, 1, "antipode-done");
    BarrierAsync(Lineages(), options, [&](const BarrierResult&) { called.set_value(); });
    ASSERT_EQ(called.get_future().wait_for(60s), std::future_status::ready) << "a callback that is lost";
  }
  ExpectWhole();
}

// BAR-32: what could not begin is parked nowhere, and holds no place.
TEST_F(LogServers, ACallbackThatCannotBeginLeavesNothingParked_BAR_61) {
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing()), MakeFake("two", Showing())});
  applied_ = 9;
  ExpectWhole();
  for (long number = 1; number <= 4 * Times(); ++number) {
    SCOPED_TRACE(std::to_string(number) + " of memory");
    applied_ = 0;
    const Lineage lineage = Lineages();
    const auto options = Proceeding(120s);
    std::optional<Waiter> waiter;
    try {
      const Fault fault(Lack::kMemory, number);
      const Counting counting;
      waiter = BarrierAsync(lineage, options, [](const BarrierResult&) {});
    } catch (const std::bad_alloc&) {
      SUCCEED();
    }
    if (waiter) waiter->Cancel();
    for (const auto& server : store_->Servers()) {
      Until([&] { return server->impl().Waiting() == 0; }, 60s);
    }
    Until([&] { return store_->impl().parked() == 0; }, 60s);
    EXPECT_EQ(store_->impl().parked(), 0);
  }
}

// No thread for records, repeats, or the ends of barriers: nothing is thrown, and the next one asks for it again.
TEST_F(LogServers, AThreadThatCannotBeginIsAskedForAgain_BAR_61) {
  applied_ = 9;
  store_ = MakeFakeStore<MixedShim>("s", {MakeFake("one", Showing()), MakeFake("two", Showing())});
  for (const Lack lack : {Lack::kThread, Lack::kMemory}) {
    for (long number = 1; number <= 6; ++number) {
      SCOPED_TRACE(number);
      Shutdown();
      std::promise<bool> read;
      {
        const Fault fault(lack, number);
        const Counting counting;
        const bool is_taken = Repeats::Instance().Later([&](bool) { read.set_value(true); });
        if (!is_taken) read.set_value(false);
        try {
          records::Start();
          BarrierAsync(Lineages(), Proceeding(20s)).wait();
        } catch (const std::bad_alloc&) {
          SUCCEED();
        }
      }
      EXPECT_EQ(read.get_future().wait_for(60s), std::future_status::ready);
      ExpectWhole();
      std::promise<bool> again;
      ASSERT_TRUE(Repeats::Instance().Later([&](bool) { again.set_value(true); }));
      EXPECT_TRUE(again.get_future().get());
    }
  }
}

}  // namespace
}  // namespace antipode::testing
