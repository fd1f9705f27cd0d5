// `track` and taps, on a real broker: a message can be waited for where somebody reads the region's stream (SHIM-3,
// SHIM-15, SHIM-17, SHIM-19, SHIM-20, SHIM-32, BAR-26, BAR-30, SCOPE-13).
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "../src/store/server.h"
#include "../src/store/store_impl.h"
#include "antipode/shim/server.h"
#include "reader.h"
#include "region.h"
#include "tap_memory.h"

namespace antipode::rabbitmq {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using TapTest = RabbitTest;

Options Tapped(const std::vector<Tap>& taps) { return Options(kStore).Taps(taps); }

TEST_F(TapTest, ATrackedMessageJoinsTheLineageAndIsWaitedFor) {  // SHIM-17
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  const std::string queue = b_.Queue();
  b_.own().Bind(queue, exchange);
  Connection mq = b_.Wrapped(Tapped({tap}).Track());
  EXPECT_THAT(mq.store()->replicas(), ::testing::ElementsAre(tap.Address()));
  EXPECT_THAT(tap.Address(), Not(HasSubstr("guest")));
  Scope scope;
  ASSERT_TRUE(mq.BasicPublish(1, exchange, "", "body").ok());
  ASSERT_EQ(scope.lineage().size(), 1U);
  const WriteId write_id = scope.lineage().ids().front();
  EXPECT_EQ(write_id.key(), exchange);
  const BarrierResult result = Barrier(BarrierOptions().Timeout(10s));
  EXPECT_TRUE(result.satisfied()) << result.Explain();
  EXPECT_TRUE(result.complete());
  const PlainMessage sent = b_.own().Get(queue);
  EXPECT_EQ(sent.message_id, write_id.opaque()->mark);
  EXPECT_EQ(*Lineage::Deserialize(sent.headers.front().second), scope.lineage());  // it depends on itself
}

TEST_F(TapTest, AMessageThatHasNotArrivedIsWaitedForUntilItHas) {
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  ASSERT_TRUE(Register(Tapped({tap})).ok());
  const std::string mark = NewName("mark");
  const auto begun = std::chrono::steady_clock::now();
  const BarrierResult late = Judge(Message(mark), 300ms);
  EXPECT_EQ(late.store(kStore).verdict, Verdict::kTimedOut);
  EXPECT_THAT(late.store(kStore).reason, HasSubstr(tap.queue));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s);
  auto waiting = std::async(std::launch::async, [&] { return Judge(Message(mark), 10s).satisfied(); });
  ASSERT_TRUE(Until([&] { return (*FindStore(kStore))->impl().parked() > 0; }));
  b_.own().Publish(exchange, "", "x", {}, mark);
  EXPECT_TRUE(waiting.get());
}

TEST_F(TapTest, ArrivalIsPushed) {  // not found by polling, whose interval here is longer than the test
  SettingWords slow;
  slow.poll = 5s;
  ASSERT_TRUE(Configure(slow).ok());
  const std::string exchange = b_.Exchange();
  ASSERT_TRUE(Register(Tapped({b_.NewTap(exchange)})).ok());
  std::chrono::duration<double> least = 100s;
  for (int count = 0; count < 3; ++count) {
    const std::string mark = NewName("mark");
    auto waiting = std::async(std::launch::async, [&] { return Judge(Message(mark), 20s).satisfied(); });
    ASSERT_TRUE(Until([&] { return (*FindStore(kStore))->impl().parked() > 0; }));
    // The reader knows of it by then, or the wait is longer, which another count has not.
    std::this_thread::sleep_for(300ms);
    const auto begun = std::chrono::steady_clock::now();
    b_.own().Publish(exchange, "", "x", {}, mark);
    ASSERT_TRUE(waiting.get());
    least = std::min<std::chrono::duration<double>>(least, std::chrono::steady_clock::now() - begun);
  }
  EXPECT_LT(least.count(), 1.0);
}

TEST_F(TapTest, WhatArrivedBeforeAnybodyWaitedIsFound) {
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  for (int number = 0; number < 200; ++number) b_.own().Publish(exchange, "", "x", {}, "m" + std::to_string(number));
  ASSERT_TRUE(Register(Tapped({tap})).ok());
  for (const char* mark : {"m0", "m199"}) EXPECT_EQ(VerdictOf(Message(mark)), Verdict::kVisible) << mark;
  const auto server = (*FindStore(kStore))->Servers().front();
  server->impl().Retire();
  for (int number = 200; number < 300; ++number) b_.own().Publish(exchange, "", "x", {}, "m" + std::to_string(number));
  for (const char* mark : {"m299", "m200", "m5"}) EXPECT_EQ(VerdictOf(Message(mark)), Verdict::kVisible) << mark;
}

TEST_F(TapTest, MemoryIsBoundedAndWhatWasForgottenNeverPasses) {
  const std::string exchange = b_.Exchange();
  Tap tap = b_.NewTap(exchange);
  tap.remember = 20;
  for (int number = 0; number < 200; ++number) b_.own().Publish(exchange, "", "x", {}, "m" + std::to_string(number));
  ASSERT_TRUE(Register(Tapped({tap})).ok());
  EXPECT_EQ(VerdictOf(Message("m199")), Verdict::kVisible);
  EXPECT_EQ(VerdictOf(Message("m3"), 200ms), Verdict::kTimedOut);
}

TEST_F(TapTest, WithoutATapArrivalIsUnprovenAndSaysWhatToDo) {  // BAR-30
  Connection mq = b_.Wrapped(Options(kStore).Track());
  const std::string queue = b_.Queue();
  Scope scope;
  ASSERT_TRUE(mq.BasicPublish(1, "", queue, "x").ok());
  const auto begun = std::chrono::steady_clock::now();
  const BarrierResult result = Judge(scope.lineage());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s);
  EXPECT_EQ(result.store(kStore).verdict, Verdict::kUnproven);
  EXPECT_THAT(result.store(kStore).reason, HasSubstr("tap"));
  EXPECT_THAT(result.store(kStore).reason, HasSubstr("Register"));
}

TEST_F(TapTest, AConsumerNeedsNoTapForTheMessageThatItGot) {
  const std::string queue = b_.Queue();
  {
    Connection mq = b_.Wrapped(Options(kStore).Track());
    const Scope scope;
    ASSERT_TRUE(mq.BasicPublish(1, "", queue, "x").ok());
  }
  Connection mq = b_.Wrapped(Options(kStore));
  ASSERT_TRUE(mq.BasicConsume(1, queue).ok());
  Envelope envelope;
  ASSERT_TRUE(mq.ConsumeMessage(&envelope, 10s).ok());
  const Scope scope = ScopeOf(envelope);
  EXPECT_TRUE(Barrier(BarrierOptions().Timeout(2s)).satisfied());
  EXPECT_EQ(VerdictOf(scope.lineage() | Message("another-message"), 2s), Verdict::kUnproven);
}

TEST_F(TapTest, AMessageIdThatIsUsedAgainProvesNothingForAnotherMessage) {
  const std::string exchange = b_.Exchange("direct");
  const Tap tap = b_.NewTap(exchange, "arrives");
  Connection mq = b_.Wrapped(Tapped({tap}).Track());
  std::string id = "order-7";
  amqp_basic_properties_t given{};
  given._flags = AMQP_BASIC_MESSAGE_ID_FLAG;
  given.message_id = {id.size(), id.data()};
  Lineage first;
  {
    Scope scope;
    ASSERT_TRUE(mq.BasicPublish(1, exchange, "arrives", "1", &given).ok());
    first = scope.lineage();
    EXPECT_TRUE(Judge(first).satisfied());
  }
  Scope scope;
  ASSERT_TRUE(mq.BasicPublish(1, exchange, "does not arrive", "2", &given).ok());
  EXPECT_EQ(VerdictOf(scope.lineage(), 300ms), Verdict::kTimedOut);
  EXPECT_NE(scope.lineage(), first);
}

TEST_F(TapTest, ATapThatCannotBeReadIsRefusedAtOnce) {  // SHIM-3
  const std::string classic = b_.Queue();
  const std::string url = b_.url();
  std::string wrong = url;
  wrong.replace(wrong.find("guest:guest"), 11, "guest:wrong");
  const std::string no_vhost = url.substr(0, url.rfind('/')) + "/no-such-vhost";
  for (const auto& [tap, words] : std::vector<std::pair<Tap, std::string>>{{{url, "no-such-queue"}, "DeclareTap"},
                                                                           {{url, classic}, "no stream queue"},
                                                                           {{wrong, classic}, "may not log in"},
                                                                           {{no_vhost, classic}, "virtual host"}}) {
    const Result<void> refused = Register(Tapped({tap}));
    ASSERT_FALSE(refused.ok()) << words;
    EXPECT_EQ(refused.error().code, ErrorCode::kUnfitStore);
    EXPECT_THAT(refused.error().message, HasSubstr(words));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("guest:")));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("wrong")));
  }
  Options lets(kStore);
  lets.WhenUnfit(OnUnfit::kUnproven);
  lets.Taps({{url, classic}});
  ASSERT_TRUE(Register(lets).ok());
  EXPECT_EQ(VerdictOf(Message("m")), Verdict::kUnproven);
  b_.own().Publish("", classic, "kept");
  EXPECT_EQ(b_.own().Get(classic).body, "kept");  // a queue that is no tap is not emptied
}

TEST_F(TapTest, ABrokerOutOfReachIsNoMistakeAndNoProof) {
  SettingWords soon;
  soon.replica_out_after = 500ms;
  ASSERT_TRUE(Configure(soon).ok());
  ASSERT_TRUE(Register(Tapped({{"amqp://guest:guest@127.0.0.1:1/%2F", "tap"}})).ok());
  const auto begun = std::chrono::steady_clock::now();
  const BarrierResult result = Judge(Message("m"), 3s);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  EXPECT_FALSE(result.satisfied());
  EXPECT_THAT(result.Explain(), Not(HasSubstr("guest")));
}

TEST_F(TapTest, TapsFromTheEnvironment) {
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  setenv("ANTIPODE_STORE_ENVIRONED_REPLICAS", (tap.url + "#" + tap.queue).c_str(), 1);
  const Result<void> registered = Register(Options("environed"));
  unsetenv("ANTIPODE_STORE_ENVIRONED_REPLICAS");
  ASSERT_TRUE(registered.ok());
  EXPECT_THAT((*FindStore("environed"))->replicas(), ::testing::ElementsAre(tap.Address()));
}

TEST_F(TapTest, ATapWhoseStreamGoesAwayProvesNothingMore) {
  const std::string exchange = b_.Exchange();
  b_.own().Bind(b_.Queue(), exchange);
  const Tap tap = b_.NewTap(exchange);
  ASSERT_TRUE(Register(Tapped({tap})).ok());
  b_.own().Publish(exchange, "", "x", {}, "before");
  EXPECT_EQ(VerdictOf(Message("before")), Verdict::kVisible);
  b_.Delete(tap.queue);
  EXPECT_EQ(VerdictOf(Message("after"), 3s), Verdict::kUnproven);
  // A busy broker gives the first messages to the stream of that name that it is just deleting: then once more, with
  // another one.
  std::string again;
  const auto declared_anew = [&, count = 0]() mutable {
    if (count > 0) b_.Delete(tap.queue);
    b_.own().Declare(tap.queue, {{"x-queue-type", "stream"}});
    b_.own().Bind(tap.queue, exchange);
    again = "again" + std::to_string(++count);
    b_.own().Publish(exchange, "", "x", {}, again);
    return Until([&] { return b_.own().Count(tap.queue) == 1; }, 10s);
  };
  ASSERT_TRUE(Until(declared_anew, 90s));
  EXPECT_TRUE(Until([&] { return VerdictOf(Message(again), 5s) == Verdict::kVisible; }, 90s))
      << "it is there, and was sent once";
}

class DeclaredAnew : public RabbitTest, public ::testing::WithParamInterface<std::pair<int, int>> {};

// Its offsets begin anew: neither a place behind its end nor one in its middle may be read on from.
TEST_P(DeclaredAnew, AStreamDeclaredAnewWhileNobodyReadsIsReadWhole) {
  const auto [before, after] = GetParam();
  const std::string exchange = b_.Exchange();
  b_.own().Bind(b_.Queue(), exchange);
  const Tap tap = b_.NewTap(exchange);
  ASSERT_TRUE(Register(Tapped({tap})).ok());
  for (int number = 0; number < before; ++number) {
    b_.own().Publish(exchange, "", "x", {}, "old" + std::to_string(number));
  }
  const bool is_read = before == 0 || VerdictOf(Message("old" + std::to_string(before - 1))) == Verdict::kVisible;
  EXPECT_TRUE(is_read);
  (*FindStore(kStore))->Servers().front()->impl().Retire();
  // A busy broker gives the first messages to the stream of that name that it is just deleting: then once more.
  const auto declared_anew = [&, count = after] {
    b_.Delete(tap.queue);
    b_.own().Declare(tap.queue, {{"x-queue-type", "stream"}});
    b_.own().Bind(tap.queue, exchange);
    for (int number = 0; number < count; ++number) {
      b_.own().Publish(exchange, "", "x", {}, "new" + std::to_string(number));
    }
    return Until([&] { return b_.own().Count(tap.queue) == count; }, 10s);
  };
  ASSERT_TRUE(Until(declared_anew, 90s));
  const std::string last = "new" + std::to_string(after - 1);  // a busy broker may take its time for the new stream
  EXPECT_TRUE(Until([&] { return VerdictOf(Message(last), 5s) == Verdict::kVisible; }, 90s));
  for (int number = 0; number < after; ++number) {
    EXPECT_EQ(VerdictOf(Message("new" + std::to_string(number)), 5s), Verdict::kVisible) << number;
  }
  for (int number = 0; number < before; ++number) {  // arrived stays arrived
    EXPECT_EQ(VerdictOf(Message("old" + std::to_string(number)), 5s), Verdict::kVisible) << number;
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, DeclaredAnew,
                         ::testing::Values(std::pair(50, 20), std::pair(20, 50), std::pair(30, 30), std::pair(0, 10)));

TEST_F(TapTest, AConnectionThatBreaksIsMadeAgain) {
  Link link("b");
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  ASSERT_TRUE(Register(Tapped({{link.url(), tap.queue}})).ok());
  b_.own().Publish(exchange, "", "x", {}, "one");
  EXPECT_EQ(VerdictOf(Message("one")), Verdict::kVisible);
  link.Cut();
  b_.own().Publish(exchange, "", "x", {}, "two");
  EXPECT_NE(VerdictOf(Message("two"), 300ms), Verdict::kVisible);
  link.Heal();
  EXPECT_EQ(VerdictOf(Message("two"), 10s), Verdict::kVisible);
}

TEST_F(TapTest, ASilentBrokerIsLeftOutAndSaidSo) {  // BAR-26
  SettingWords soon;
  soon.replica_out_after = 1s;
  ASSERT_TRUE(Configure(soon).ok());
  Link link("b");
  const std::string exchange = b_.Exchange();
  const Tap tap = b_.NewTap(exchange);
  ASSERT_TRUE(Register(Tapped({tap, {link.url(), tap.queue}})).ok());
  b_.own().Publish(exchange, "", "x", {}, "one");
  EXPECT_TRUE(Judge(Message("one")).complete());
  link.Silence();
  b_.own().Publish(exchange, "", "x", {}, "two");
  const auto begun = std::chrono::steady_clock::now();
  const BarrierResult result = Judge(Message("two"), 10s);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 6s);
  EXPECT_TRUE(result.satisfied()) << result.Explain();
  EXPECT_FALSE(result.complete());
  link.Heal();
  EXPECT_TRUE(Until([&] { return Judge(Message("two"), 2s).complete(); }, 20s));
}

TEST_F(TapTest, AForeignIdentifierIsUnproven) {
  ASSERT_TRUE(Register(Tapped({b_.NewTap(b_.Exchange())})).ok());
  EXPECT_EQ(VerdictOf(Lineage(*WriteId::Position(kStore, "e", 5))), Verdict::kUnproven);
}

TEST_F(TapTest, TheChildOfAForkReadsTheTapByItself) {  // SCOPE-13
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that begin in a forked child";
#endif
  const std::string exchange = b_.Exchange();
  ASSERT_TRUE(Register(Tapped({b_.NewTap(exchange)})).ok());
  b_.own().Publish(exchange, "", "x", {}, "one");
  ASSERT_EQ(VerdictOf(Message("one")), Verdict::kVisible);
  const pid_t child = fork();
  if (child == 0) {
    const bool passed =
        VerdictOf(Message("one")) == Verdict::kVisible && VerdictOf(Message("two")) == Verdict::kVisible;
    _exit(passed ? 0 : 2);
  }
  b_.own().Publish(exchange, "", "x", {}, "two");
  EXPECT_EQ(VerdictOf(Message("two")), Verdict::kVisible);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TapTest, TheDeclaredTapIsAStream) {
  const std::string exchange = b_.Exchange();
  Connection mq = b_.Wrapped();
  const Reply declared = DeclareTap(mq, 1, exchange, NewName("tap"));
  ASSERT_TRUE(declared.ok()) << declared.words();
  const std::string queue = declared.words();
  EXPECT_FALSE(Probe(Tap{b_.url(), queue}, 5s).has_value());
  b_.Delete(queue);
}

TEST(TapMemory, IsBounded) {
  TapMemory memory(3);
  for (const char* mark : {"a", "b", "a", "c", "d"}) EXPECT_FALSE(memory.Note(mark));
  EXPECT_EQ(memory.size(), 3U);
  EXPECT_FALSE(memory.Want("a"));
  EXPECT_TRUE(memory.Want("b"));
  EXPECT_TRUE(memory.Note("a"));  // somebody waits for it
  EXPECT_FALSE(memory.Note("a"));
  for (int number = 0; number < 15000; ++number) EXPECT_FALSE(memory.Want("never-" + std::to_string(number)));
  EXPECT_LE(memory.wanted(), 10000U);
}

}  // namespace
}  // namespace antipode::rabbitmq
