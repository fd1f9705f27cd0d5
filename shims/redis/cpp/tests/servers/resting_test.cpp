// Lineages that rest beside values, in hashes and in envelopes, and shared with Python (SHIM-9, SHIM-13, SHIM-34 to
// SHIM-37).
#include <gmock/gmock.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "antipode/shim/envelope.h"
#include "region.h"

namespace antipode::redis {
namespace {

const Lineage& Other() {
  static const auto& other = *new Lineage(WriteId::Position("user-acl", "0123456789abcdef", 49).value());
  return other;
}

StoreOptions InEnvelopes() { return StoreOptions(kStore).RestIn("envelope").EnvelopeKeys("post:*"); }
StoreOptions InField() { return StoreOptions(kStore).RestIn("field"); }

class RestingTest : public PostsTest {
 protected:
  void SetUp() override {
    PostsTest::SetUp();
    Plain("a").Do({"FLUSHALL"});
  }

  // Sends what was said in one pipeline; the last reply.
  static Reply Sent(Connection& at, const std::vector<std::string>& commands) {
    for (const std::string& each : commands) EXPECT_EQ(at.Append(each.c_str()), REDIS_OK) << each;
    Reply reply;
    for (std::size_t place = 0; place < commands.size(); ++place) EXPECT_EQ(at.GetReply(&reply), REDIS_OK);
    return reply;
  }

  // The value and the lineage's text under a key, as they are stored.
  static std::pair<std::string, std::string> Stored(const std::string& key) {
    const std::string octets = Plain("a").Get(key).value_or("");
    const OpenedEnvelope opened = OpenEnvelope(octets);
    EXPECT_TRUE(opened.fault.empty()) << opened.fault;
    return {std::string(opened.value), std::string(opened.text.value_or(""))};
  }
};

TEST_F(RestingTest, ValueAndLineageAreOneValueThatReadsAsItself) {  // SHIM-9, SHIM-12, SHIM-36
  Connection posts = Wrapped("a", InEnvelopes());
  {
    Scope scope(Other());
    EXPECT_EQ(posts.Command("SET post:1 body").text(), "OK");
    EXPECT_EQ(scope->lineage().OfStore(kStore).size(), 1U);
    EXPECT_EQ(posts.Command("SET other body").text(), "OK");
  }
  EXPECT_EQ(Stored("post:1"), std::make_pair(std::string("body"), Other().Serialize()));
  EXPECT_EQ(Plain("a").Get("other"), "body");
  EXPECT_EQ(posts.Command("GET post:1").text(), "body");
  EXPECT_EQ(posts.Command("GET post:none")->type, REDIS_REPLY_NIL);
  Scope scope;
  posts.Command("GET post:1");
  EXPECT_TRUE(scope->lineage().empty());
}

TEST_F(RestingTest, EveryCommandThatWritesWholeValues) {  // SHIM-9
  Connection posts = Wrapped("a", InEnvelopes());
  const std::vector<std::string> pipelines[] = {{"SETEX post:1 100 v"},
                                                {"PSETEX post:1 100000 v"},
                                                {"SETNX post:1 v"},
                                                {"SET post:1 v EX 100 NX"},
                                                {"MSET other v post:1 v"},
                                                {"MSETNX post:1 v other v"},
                                                {"getset post:1 v"},
                                                {"SET other v", "SET post:1 v"},
                                                {"MULTI", "SET post:1 v", "SET other v", "EXEC"}};
  for (const auto& commands : pipelines) {
    Plain("a").Do({"DEL", "post:1", "other"});
    Scope scope(Other());
    const Reply last = Sent(posts, commands);
    EXPECT_FALSE(last.IsError()) << commands[0] << last.text();
    EXPECT_EQ(scope->lineage().OfStore(kStore).size(), 1U) << commands[0];
    EXPECT_TRUE(scope->pending().empty()) << commands[0];
    EXPECT_EQ(Stored("post:1"), std::make_pair(std::string("v"), Other().Serialize())) << commands[0];
    EXPECT_EQ(Plain("a").Get("other").value_or("v"), "v") << commands[0];
  }
}

// What a reply says, and each part of it.
std::string Said(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      return "nil";
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply.integer);
    case REDIS_REPLY_ARRAY: {
      std::string said = "[";
      for (std::size_t place = 0; place < reply.elements; ++place) {
        said += (place > 0 ? " " : "") + Said(*reply.element[place]);
      }
      return said + "]";
    }
    default:
      return std::string(reply.str, reply.len);
  }
}

TEST_F(RestingTest, EveryCommandThatAnswersWithWholeValues) {  // SHIM-13, SHIM-36
  Connection posts = Wrapped("a", InEnvelopes());
  Plain("a").Do({"SET", "other", "plain"});
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"GET post:1"}, "body"},
      {{"GETEX post:1 EX 100"}, "body"},
      {{"GETDEL post:1"}, "body"},
      {{"GETSET post:1 v"}, "body"},
      {{"SET post:1 v GET"}, "body"},
      {{"MGET other post:1 post:none"}, "[plain body nil]"},
      {{"SET x 1", "GET post:1"}, "body"},
      {{"MULTI", "GET other", "GET post:1", "MGET post:1 other", "PING", "EXEC"}, "[plain body [body plain] PONG]"},
      {{"MULTI", "GETDEL post:1", "EXEC"}, "[body]"}};
  for (const auto& [commands, wanted] : cases) {
    for (const bool collects : {false, true}) {
      {
        Scope scope(Other());
        posts.Command("SET post:1 body");
      }
      Scope scope;
      std::optional<Reading> seen;
      if (collects) seen.emplace();
      const Reply reply = commands.size() == 1 ? posts.Command(commands[0].c_str()) : Sent(posts, commands);
      ASSERT_TRUE(reply) << commands[0];
      EXPECT_EQ(Said(*reply), wanted) << commands[0];
      if (!collects) continue;
      EXPECT_TRUE(Other() <= seen->lineage()) << commands[0] << " " << seen->lineage();
      EXPECT_FALSE(seen->lineage().OfStore(kStore).empty()) << commands[0];
      EXPECT_TRUE(seen->lineage().IsComplete()) << commands[0];
    }
  }
}

TEST_F(RestingTest, WatchedReadsAreOpened) {
  Connection posts = Wrapped("a", InEnvelopes());
  Scope scope(Other());
  posts.Command("SET post:1 body");
  posts.Command("WATCH post:1");
  {
    const Reading seen;
    EXPECT_EQ(posts.Command("GET post:1").text(), "body");
    EXPECT_TRUE(Other() <= seen.lineage());
  }
  posts.Command("MULTI");
  posts.Command("SET post:1 body!");
  EXPECT_EQ(posts.Command("EXEC")->type, REDIS_REPLY_ARRAY);
  EXPECT_EQ(posts.Command("GET post:1").text(), "body!");
}

TEST_F(RestingTest, AutomaticMergingTakesWhatRests) {
  Connection posts = Wrapped("a", InEnvelopes());
  {
    Scope scope(Other());
    posts.Command("MSET post:1 a post:2 b");
  }
  SettingWords words;
  words.auto_merge = true;
  ASSERT_TRUE(Configure(words).ok());
  for (const char* command : {"GET post:1", "GETDEL post:1"}) {
    Scope scope;
    EXPECT_EQ(posts.Command(command).text(), "a");
    EXPECT_TRUE(Other() <= scope->lineage()) << command;
  }
}

// SCOPE-24, SHIM-13: also where the other one wants to know of it, too, and where something is written with it.
TEST_F(RestingTest, WhoTakesWhatAnotherScopeAskedForDependsOnWhatRests) {
  Connection posts = Wrapped("a", InEnvelopes());
  {
    const Scope writer(Other());
    EXPECT_EQ(posts.Command("SET post:1 body").text(), "OK");
  }
  const std::vector<std::string> asked[] = {
      {"GET post:1"}, {"MULTI", "GET post:1"}, {"MULTI", "GET post:1", "SET other v"}, {"SET other v", "GET post:1"}};
  for (const auto& commands : asked) {
    for (const bool is_sent : {false, true}) {
      for (const bool collects : {false, true}) {
        std::size_t replies = commands.size();
        {
          const Scope asking;
          std::optional<Reading> seen;
          if (collects) seen.emplace();
          for (const std::string& each : commands) EXPECT_EQ(posts.Append(each.c_str()), REDIS_OK) << each;
          Reply reply;
          for (; is_sent && replies > 1; --replies) EXPECT_EQ(posts.GetReply(&reply), REDIS_OK);
        }
        const Scope taking;
        const Reading seen;
        Reply reply;
        if (commands.front() == "MULTI") {
          EXPECT_EQ(posts.Append("EXEC"), REDIS_OK);
          ++replies;
        }
        for (; replies > 0; --replies) EXPECT_EQ(posts.GetReply(&reply), REDIS_OK);
        const Lineage lineage = seen.lineage();
        const std::string told = commands.back() + ", " + lineage.Serialize();
        EXPECT_FALSE(lineage.OfStore("user-acl").empty()) << told;
        EXPECT_TRUE(!lineage.OfStore(kStore).empty() || !lineage.IsComplete()) << told;
      }
    }
  }
}

TEST_F(RestingTest, WhatTheShimDidNotWriteReadsAsItself) {  // SHIM-14, SHIM-34, SHIM-35
  Connection posts = Wrapped("a", InEnvelopes());
  Plain("a").Do({"SET", "post:1", "\xff\xf5" "AE plain"});
  Scope scope;
  {
    const Reading seen;
    EXPECT_EQ(posts.Command("GET post:1").text(), "\xff\xf5" "AE plain");
    EXPECT_EQ(seen.lineage().stores(), std::vector<std::string>{kStore});
    EXPECT_TRUE(seen.lineage().IsComplete());
  }
  for (const std::string broken : {"\xf5" "AE", "\xf5" "AE2abc", "\xf5" "AE1\xff\xff" "1~a..e.1"}) {
    Plain("a").Do({"SET", "post:1", broken});
    const Reading seen;
    EXPECT_EQ(posts.Command("GET post:1").text(), broken);
    EXPECT_EQ(Said(*posts.Command("MGET post:1")), "[" + broken + "]");
    EXPECT_EQ(seen.lineage().incomplete(), std::vector<std::string>{kStore});
    const Reading written;
    Scope inner;
    EXPECT_EQ(posts.Command("SET post:2 %b", broken.data(), broken.size()).text(), "OK");
    EXPECT_EQ(posts.Command("GET post:2").text(), broken);
    EXPECT_TRUE(written.lineage().IsComplete()) << "a value that looks like an envelope is none";
  }
  Plain("a").Do({"SET", "post:1", CloseEnvelope("body", "no lineage").value()});
  const Reading seen;
  EXPECT_EQ(posts.Command("GET post:1").text(), "body");
  EXPECT_EQ(seen.lineage().incomplete(), std::vector<std::string>{kStore});
}

TEST_F(RestingTest, AnotherWriteInFlightMarksWhatRests) {  // SCOPE-16: not the write itself
  Connection posts = Wrapped("a", InEnvelopes());
  Connection later = Wrapped("a", InEnvelopes());
  Scope scope(Other());
  later.Append("SET other v");
  posts.Command("SET post:1 body");
  EXPECT_EQ(Stored("post:1").second, Other().Serialize() + "~_.i." + kStore);
  Reply reply;
  ASSERT_EQ(later.GetReply(&reply), REDIS_OK);
  EXPECT_TRUE(scope->pending().empty());
}

TEST_F(RestingTest, WhatWouldSeeTheOctetsInsideIsRefusedBeforeItIsSent) {  // SHIM-36, SHIM-37
  Connection posts = Wrapped("a", InEnvelopes());
  Scope scope(Other());
  posts.Command("SET post:1 7");
  const auto before = Plain("a").Get("post:1");
  const Lineage lineage = scope->lineage();
  for (const char* command : {"APPEND post:1 x", "INCR post:1", "STRLEN post:1", "RENAME post:1 other"}) {
    const Reply reply = posts.Command(command);
    EXPECT_FALSE(reply);
    ASSERT_NE(reply.error(), nullptr) << command;
    EXPECT_EQ(reply.error()->code, ErrorCode::kConfiguration);
    EXPECT_EQ(posts.Append(command), REDIS_ERR);
    ASSERT_NE(posts.refused(), nullptr);
    EXPECT_TRUE(scope->pending().empty());
  }
  EXPECT_EQ(posts.err(), 0);
  EXPECT_EQ(Plain("a").Get("post:1"), before);
  EXPECT_TRUE(scope->lineage().IsSame(lineage));
  EXPECT_EQ(posts.Command("APPEND other x")->integer, 1);
  EXPECT_EQ(posts.refused(), nullptr);
  EXPECT_EQ(posts.Command("RENAME post:1 post:2").text(), "OK");
  EXPECT_EQ(posts.Command("GET post:2").text(), "7");
}

TEST_F(RestingTest, OffWritesNoLineageAndStillOpens) {  // SHIM-36
  Connection posts = Wrapped("a", InEnvelopes());
  Scope scope(Other());
  posts.Command("SET post:1 body");
  SettingWords words;
  words.mode = Mode::kOff;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(posts.Command("GET post:1").text(), "body");
  EXPECT_EQ(posts.Command("SET post:1 v GET").text(), "body");
  EXPECT_EQ(Plain("a").Get("post:1"), "v");
  EXPECT_EQ(posts.Command("INCR post:1").error()->code, ErrorCode::kConfiguration);
}

TEST_F(RestingTest, LineagesAreNotTakenOrGivenWhereTheOptionsSaySo) {  // SHIM-14
  Connection silent = Wrapped("a", InEnvelopes().LineageOut(false));
  Connection deaf = Wrapped("a", InEnvelopes().LineageIn(false));
  {
    Scope scope(Other());
    silent.Command("SET post:1 v");
    EXPECT_EQ(Plain("a").Get("post:1"), "v");
    deaf.Command("SET post:1 v");
  }
  EXPECT_TRUE(Other() <= *Lineage::Deserialize(Stored("post:1").second));
  const Reading seen;
  EXPECT_EQ(deaf.Command("GET post:1").text(), "v");
  EXPECT_EQ(seen.lineage().stores(), std::vector<std::string>{kStore});
}

TEST_F(RestingTest, AReadThatWaitsIsOpened) {
  Connection posts = Wrapped("a", InEnvelopes());
  Connection reader = Wrapped("b2", InEnvelopes().WaitOnRead(true).Timeout(10s));
  for (int number = 0; number < 5; ++number) {
    Scope scope(Other());
    posts.Command("SET post:1 %d", number);
    EXPECT_EQ(reader.Command("GET post:1").text(), std::to_string(number));
  }
}

TEST_F(RestingTest, WrapsOfOneStoreAgreeOnTheKeys) {  // SHIM-37: whoever only waits has no say
  ASSERT_TRUE(Register(StoreOptions(kStore).Replicas({Url("b1"), Url("b2")})).ok());
  Connection first = Wrapped("a", InEnvelopes());
  Connection again = Wrapped("b1", InEnvelopes());
  for (const StoreOptions& other : {StoreOptions(kStore), InEnvelopes().EnvelopeKeys("user:*"), InField()}) {
    const auto refused = Wrap(Connect("a"), other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kConfiguration);
    EXPECT_NE(refused.error().message.find("the same EnvelopeKeys"), std::string::npos) << refused.error().message;
  }
}

// -- hashes

TEST_F(RestingTest, AHashsLineageRestsInAFieldThatNobodySees) {  // PROP-21, SHIM-9
  Connection posts = Wrapped("a", InField());
  {
    Scope scope(Other());
    EXPECT_EQ(posts.Command("HSET h f 1 g 2")->integer, 2);
    EXPECT_EQ(posts.Command("HSET h f 3")->integer, 0);
    EXPECT_EQ(posts.Command("HINCRBY h g 5")->integer, 7);
    EXPECT_EQ(posts.Command("HINCRBYFLOAT h x 1.5").text(), "1.5");
    EXPECT_EQ(posts.Command("HSETNX h f 9")->integer, 0);
    EXPECT_EQ(posts.Command("HMSET h y 1").text(), "OK");
    EXPECT_EQ(posts.Command("HDEL h x y")->integer, 2);
    const Reply done = Sent(posts, {"MULTI", "HSET h z 9", "HGETALL h", "HDEL h z", "EXEC"});
    ASSERT_EQ(done->elements, 3U);
    EXPECT_EQ(done->element[1]->elements, 6U);
    EXPECT_EQ(Said(*done).find("antipode"), std::string::npos);
    EXPECT_EQ(scope->lineage().OfStore(kStore).size(), 1U);
    EXPECT_TRUE(scope->pending().empty());
  }
  const Reply stored = Plain("a").Do({"HGET", "h", "antipode"});
  const auto rests = Lineage::Deserialize(stored.text());
  ASSERT_TRUE(rests.ok()) << stored.text();
  EXPECT_TRUE(Other() <= *rests);
  struct Read {
    const char* command;
    std::string wanted;
    std::string or_else;  // a server gives the fields of a hash with a long value in any order
  };
  const Read reads[] = {{"HGETALL h", "[f 3 g 7]", "[g 7 f 3]"},
                        {"HKEYS h", "[f g]", "[g f]"},
                        {"HVALS h", "[3 7]", "[7 3]"},
                        {"HLEN h", "2", "2"},
                        {"HSCAN h 0", "[0 [f 3 g 7]]", "[0 [g 7 f 3]]"},
                        {"HMGET h f none", "[3 nil]", "[3 nil]"}};
  for (const Read& read : reads) {
    const auto is_wanted = ::testing::AnyOf(read.wanted, read.or_else);
    EXPECT_THAT(Said(*posts.Command(read.command)), is_wanted) << read.command;
    EXPECT_THAT(Said(*Sent(posts, {"PING", read.command})), is_wanted) << read.command;
    EXPECT_THAT(Said(*Sent(posts, {"MULTI", read.command, "EXEC"})),
                ::testing::AnyOf("[" + read.wanted + "]", "[" + read.or_else + "]"))
        << read.command;
  }
}

TEST_F(RestingTest, WhatRestsBesideAHashIsReadWithIt) {  // SHIM-13
  Connection posts = Wrapped("a", InField());
  {
    Scope scope(Other());
    posts.Command("HSET h f 1");
  }
  for (const char* command : {"HGET h f", "HGETALL h", "HMGET h f", "HVALS h", "HEXISTS h f", "HLEN h"}) {
    const Reading seen;
    posts.Command(command);
    EXPECT_TRUE(Other() <= seen.lineage()) << command;
    EXPECT_TRUE(seen.lineage().IsComplete()) << command;
  }
  for (const bool transaction : {false, true}) {
    const Reading seen;
    const std::vector<std::string> plain = {"PING", "HGETALL h"};
    Sent(posts, transaction ? std::vector<std::string>{"MULTI", "HGETALL h", "EXEC"} : plain);
    EXPECT_TRUE(Other() <= seen.lineage()) << transaction;
    EXPECT_TRUE(seen.lineage().IsComplete()) << transaction;
  }
  const Reading seen;  // in a pipeline a part of a hash does not bring its lineage: what was read is incomplete
  Sent(posts, {"PING", "HGET h f"});
  EXPECT_EQ(seen.lineage().incomplete(), std::vector<std::string>{kStore});
}

TEST_F(RestingTest, LineagesOfAHashAreJoinedAndStaySmall) {
  Connection posts = Wrapped("a", InField());
  for (std::uint64_t number = 0; number < 20; ++number) {
    Scope scope(Lineage(WriteId::Position("user-acl", "0123456789abcdef", number).value()));
    posts.Command("HSET h f%d v", static_cast<int>(number));
  }
  EXPECT_EQ(Plain("a").Do({"HGET", "h", "antipode"}).text(), "1~user-acl..0123456789abcdef.19");
  {
    Scope scope(Lineage(WriteId::Make("img", "cat.jpg", Opaque{"m"}).value()));
    posts.Command("HSET h g v");
  }
  const Reading seen;
  posts.Command("HGETALL h");
  const std::vector<std::string> stores = seen.lineage().stores();
  EXPECT_EQ(std::set<std::string>(stores.begin(), stores.end()), (std::set<std::string>{kStore, "img", "user-acl"}));
}

TEST_F(RestingTest, ErrorsAndDeletedHashesAreTheStoresOwn) {  // SHIM-2
  Connection posts = Wrapped("a", InField());
  Plain("a").Do({"SET", "text", "v"});
  Scope scope(Other());
  EXPECT_TRUE(posts.Command("HSET text f 1").IsError());
  posts.Command("HSET h f x");
  EXPECT_TRUE(posts.Command("HINCRBY h f 1").IsError());
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_EQ(posts.Command("HDEL h f")->integer, 1);
  EXPECT_EQ(Plain("a").Do({"EXISTS", "h"})->integer, 0);
  Plain("a").Do({"HSET", "bad", "f", "1", "antipode", "no lineage"});
  const Reading seen;
  EXPECT_EQ(Said(*posts.Command("HGETALL bad")), "[f 1]");
  EXPECT_EQ(seen.lineage().incomplete(), std::vector<std::string>{kStore});
}

// -- one store shared with Python

TEST_F(RestingTest, EachReadsWhatTheOtherLetRest) {  // SHIM-9, SHIM-13
  Connection posts = Wrapped("a", InEnvelopes());
  {
    Scope scope(Other());
    posts.Command("SET post:cpp hello");
  }
  const std::string said = Python(R"(
import sys, antipode, antipode_redis, redis
client = redis.Redis.from_url(sys.argv[1])
posts = antipode_redis.wrap(client, store="blog-posts", rest="envelope", envelope_keys="post:*")
other = antipode.Lineage.deserialize(sys.argv[4])
with antipode.scope(other):
    posts.set("post:python", "hello")
with antipode.scope(), antipode.reading() as seen:
    print(posts.get("post:cpp"), other <= seen.lineage, seen.lineage.is_complete())
)",
                                  Other().Serialize());
  EXPECT_EQ(said, "b'hello' True True");
  const Reading seen;
  EXPECT_EQ(posts.Command("GET post:python").text(), "hello");
  EXPECT_TRUE(Other() <= seen.lineage());
  EXPECT_TRUE(seen.lineage().IsComplete());
}

TEST_F(RestingTest, EachReadsTheOthersHashes) {
  Connection posts = Wrapped("a", InField());
  {
    Scope scope(Other());
    posts.Command("HSET of-cpp f hello");
    posts.Command("HSET both f 1");
  }
  const std::string said = Python(R"(
import sys, antipode, antipode_redis, redis
posts = antipode_redis.wrap(redis.Redis.from_url(sys.argv[1]), store="blog-posts", rest="field")
other = antipode.Lineage.deserialize(sys.argv[4])
with antipode.scope(antipode.Lineage([antipode.WriteId.position("img", "0123456789abcdef", 7)])):
    posts.hset("of-python", "f", "hello")
    posts.hset("both", "g", "2")
with antipode.scope(), antipode.reading() as seen:
    print(posts.hgetall("of-cpp"), other <= seen.lineage, seen.lineage.is_complete())
)",
                                  Other().Serialize());
  EXPECT_EQ(said, "{b'f': b'hello'} True True");
  const Reading seen;
  EXPECT_EQ(Said(*posts.Command("HGETALL of-python")), "[f hello]");
  EXPECT_EQ(seen.lineage().OfStore("img").size(), 1U);
  EXPECT_THAT(Said(*posts.Command("HGETALL both")), ::testing::AnyOf("[f 1 g 2]", "[g 2 f 1]"));
  EXPECT_TRUE(Other() <= seen.lineage());
  EXPECT_TRUE(seen.lineage().IsComplete());
}

}  // namespace
}  // namespace antipode::redis
