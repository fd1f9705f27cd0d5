// Marks, as every language writes them, and one store shared with Python (EPOCH-16 to EPOCH-21, EPOCH-26).
#include <set>
#include <thread>

#include "marks.h"
#include "marks_script.h"
#include "region.h"

namespace antipode::redis {
namespace {

class MarksTest : public PostsTest {
 protected:
  std::optional<std::uint64_t> Marked(const std::string& epoch, const std::string& key = "antipode:epochs") {
    const Reply value = Plain("a").Do({"HGET", key, epoch});
    return PositionOfMark(value.text());
  }
};

TEST_F(MarksTest, TheServerKnowsTheScriptByItsSha) {
  EXPECT_EQ(Plain("a").Do({"SCRIPT", "LOAD", std::string(kMarkScript)}).text(), kMarkScriptSha);
}

TEST_F(MarksTest, TheLastWriteIsCoveredWithinTwoSecondsAndThenNothingMoreIsMarked) {  // EPOCH-19
  Connection posts = Wrapped("a");
  Ordered last;
  for (int turn = 0; turn < 5; ++turn) last = PositionOf(Written(posts, "k"));
  ASSERT_TRUE(Until([&] { return Marked(last.epoch).value_or(0) >= last.counter; }, 10s));
  const auto after = Marked(last.epoch);
  std::this_thread::sleep_for(1500ms);  // one period and more: there is nothing to mark
  EXPECT_EQ(Marked(last.epoch), after);
}

TEST_F(MarksTest, AProcessThatHoldsAPrimaryMarksItsEpochWithoutWriting) {  // EPOCH-19
  Plain("a").Do({"DEL", "other:marks"});
  Connection posts = Wrapped("a", Options(kStore).MarksKey("other:marks"));
  const Reply info = Plain("a").Do({"INFO", "replication"});
  const std::string text(info.text());
  const std::string epoch = text.substr(text.find("master_replid:") + 14, 16);
  EXPECT_TRUE(Until([&] { return Marked(epoch, "other:marks").has_value(); }, 10s));
}

TEST_F(MarksTest, NoMarkIsWrittenAtAReplicaAndAnotherKeyIsRefused) {
  Connection posts = Wrapped("a");
  auto other = Wrap(Connect("b1"), Options(kStore).MarksKey("elsewhere"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kConfiguration);
}

TEST_F(MarksTest, WritersMakeOneMarkASecondHoweverManyTheyAre) {  // EPOCH-20
  std::vector<Connection> writers;
  for (int number = 0; number < 3; ++number) writers.push_back(Wrapped("a"));
  Written(writers[0], "k");
  const auto began = std::chrono::steady_clock::now();
  std::set<std::string> clocks;
  while (std::chrono::steady_clock::now() - began < 3s) {
    for (Connection& writer : writers) Written(writer, "k");
    clocks.emplace(Plain("a").Do({"HGET", "antipode:epochs", "clock"}).text());
  }
  EXPECT_LE(clocks.size(), 6U);
  EXPECT_GE(clocks.size(), 2U);
}

TEST_F(MarksTest, AUserWithoutTheRightToMarkStillGivesPositions) {  // EPOCH-26
  Plain("a").Do(
      {"ACL", "SETUSER", "writer", "on", ">secret", "~*", "-@all", "+set", "+info", "+auth", "+hello", "+ping"});
  const lab::Server a = TheLab().server("redis", "a");
  redisContext* const context = Connect("a");
  freeReplyObject(redisCommand(context, "AUTH writer secret"));
  Options options(kStore);
  options.Url("redis://writer:secret@" + a.host + ":" + std::to_string(a.port));
  Connection posts = Wrapped("a", options);
  auto own = Wrap(context, options);
  ASSERT_TRUE(own.ok());
  PositionOf(Written(*own, "k"));
  EXPECT_TRUE(Until([] {
    for (const Measurement& each : Measurements()) {
      if (each.name == "antipode.marks.missing" && each.count == 1) return true;
    }
    return false;
  }, 10s));
  Plain("a").Do({"ACL", "DELUSER", "writer"});
}

TEST_F(MarksTest, AServerThatWantsCredentialsSaysWhereToGiveThem) {
  Plain plain("a");
  plain.Do({"CONFIG", "SET", "requirepass", "secret"});
  redisContext* const context = Connect("a");
  freeReplyObject(redisCommand(context, "AUTH secret"));
  const auto refused = Wrap(context, {kStore});
  plain.Do({"AUTH", "secret"});
  plain.Do({"CONFIG", "SET", "requirepass", ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(refused.error().message.find("Url("), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("secret"), std::string::npos);
}

TEST_F(MarksTest, WhatPythonWroteIsWaitedForHere) {
  ASSERT_TRUE(Register(StoreOptions(kStore).Replicas({Url("b1"), Url("b2")})).ok());
  const std::string text = Python(R"(
import sys, antipode, antipode_redis, redis
posts = antipode_redis.wrap(redis.Redis.from_url(sys.argv[1]), store="blog-posts")
with antipode.scope():
    posts.set("from-python", "hello")
    print(antipode.serialize())
)");
  const auto lineage = Lineage::Deserialize(text);
  ASSERT_TRUE(lineage.ok()) << text;
  const BarrierResult result = Look(*lineage);
  EXPECT_TRUE(result.complete()) << result.Explain();
  EXPECT_EQ(Plain("b1").Get("from-python"), "hello");
  EXPECT_EQ(Plain("b2").Get("from-python"), "hello");
}

TEST_F(MarksTest, WhatIsWrittenHerePythonWaitsFor) {
  Connection posts = Wrapped("a");
  TheLab().Lag("redis", "b2", "100ms");
  const Lineage written = Written(posts, "from-cpp", "hello");
  const std::string said = Python(R"(
import sys, antipode, antipode_redis, redis
antipode_redis.register("blog-posts", replicas=sys.argv[2:4])
result = antipode.barrier(antipode.Lineage.deserialize(sys.argv[4]), timeout=10)
print(result.complete, redis.Redis.from_url(sys.argv[3]).get("from-cpp"))
)",
                                  written.Serialize());
  EXPECT_EQ(said, "True b'hello'");
}

TEST_F(MarksTest, EachReadsTheOthersMarksAcrossAPromotion) {
  std::string of_python;
  Lineage of_cpp;
  {
    Connection posts = Wrapped("a");
    of_cpp = Written(posts, "cpp-before", "1");
    const Ordered last = PositionOf(of_cpp);
    ASSERT_TRUE(Until([&] { return Marked(last.epoch).value_or(0) >= last.counter; }, 10s));
    of_python = Python(R"(
import sys, time, antipode, antipode_redis, redis
posts = antipode_redis.wrap(redis.Redis.from_url(sys.argv[1]), store="blog-posts")
with antipode.scope() as scope:
    posts.set("python-before", "1")
    print(antipode.serialize())
)");  // its end marks what it wrote last
  }
  TheLab().Promote("redis", "b1", 0);
  Connection now = Wrapped("b1");
  Written(now, "after");
  const BarrierResult here = Look(*Lineage::Deserialize(of_python), 10000ms);
  EXPECT_TRUE(here.satisfied()) << here.Explain();
  const std::string said = Python(R"(
import sys, antipode, antipode_redis
antipode_redis.register("blog-posts", replicas=sys.argv[2:4])
print(antipode.barrier(antipode.Lineage.deserialize(sys.argv[4]), timeout=10).satisfied)
)",
                                  of_cpp.Serialize());
  EXPECT_EQ(said, "True");
}

// BAR-46: what the new primary has lost is not read there silently, whatever the barrier says at first.
TEST_F(MarksTest, AFallbackAfterAFailoverThatLostWritesIsNotSilent) {
  Connection first = Wrapped("a");
  Connection second = Wrapped("b1");
  ASSERT_TRUE(Look(Written(first, "kept")).satisfied());
  Lineage lost;
  TheLab().PromoteLosing("redis", "b1", [&] { lost = Written(first, "lost"); });
  ASSERT_TRUE(Until([&] { return Look(Written(second, "second term")).satisfied(); }));
  const Scope scope(lost);
  for (const auto timeout : {0ms, 1ms, 5000ms}) {
    const auto read = [&] { return static_cast<bool>(second.Command("GET lost")); };
    const Result<bool> silent = ReadOrFallback(read, read, BarrierOptions().Timeout(timeout));
    EXPECT_TRUE(!silent.ok() || !*silent);
  }
}

}  // namespace
}  // namespace antipode::redis
