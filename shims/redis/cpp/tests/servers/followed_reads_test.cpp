// Dry-run's records of reads of a lagging replica: behind, and stale where the read returns something else later (spec
// REC).
#include <map>

#include "antipode/messages.h"
#include "recorded.h"
#include "region.h"

namespace antipode::redis {
namespace {

using testing::Recorded;
using Json = Recorded::Json;

const std::string kHere = "servers/followed_reads_test.cpp:";

class FollowedReadsTest : public PostsTest {
 protected:
  void SetUp() override {
    PostsTest::SetUp();
    ASSERT_TRUE(a_.Do({"FLUSHALL"}));
    ASSERT_TRUE(Until([&] { return b1_.Do({"DBSIZE"})->integer <= 1; }));
    TheLab().Lag("redis", "b1", "500ms");
  }
  void TearDown() override { TheLab().Lag("redis", "b1", "2ms"); }

  static void Send(Connection& at, const std::vector<std::string>& words) {
    std::vector<const char*> arguments;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      arguments.push_back(word.data());
      sizes.push_back(word.size());
    }
    const Reply reply = at.CommandArgv(static_cast<int>(words.size()), arguments.data(), sizes.data());
    ASSERT_TRUE(reply);
    ASSERT_FALSE(reply.IsError()) << reply.text();
  }

  void Fill(Connection& at) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"SET", "text", "v"},           {"HSET", "hash", "f", "v", "g", "w"}, {"SADD", "set", "x", "y", "z"},
             {"ZADD", "sorted", "1.5", "m"}, {"XADD", "stream", "1-1", "f", "v"},  {"RPUSH", "list", "e"}}) {
      Send(at, words);
    }
  }

  Plain a_{"a"};
  Plain b1_{"b1"};
};

// REC-6, REC-7, REC-8, REC-12, REC-14; and the command that reads the records finds the place.
TEST_F(FollowedReadsTest, AReadThatMissesItsWriteIsStale) {
  Connection writer = Wrapped("a");
  Connection reader = Wrapped("b1");
  const Recorded recorded;
  std::string site;
  {
    MessageOptions message;
    message.queue = "notifications";
    const Scope scope = MessageScope("", message);
    Send(writer, {"SET", "private-key", "private-value"});
    site = kHere + std::to_string(__LINE__ + 1);
    EXPECT_EQ(reader.Command("GET private-key")->type, REDIS_REPLY_NIL);
    EXPECT_EQ(reader.Command("GET private-key-2")->type, REDIS_REPLY_NIL);
  }
  const std::vector<Json> found = recorded.Findings(2);
  EXPECT_EQ(found[0].at("kind"), "stale");
  EXPECT_EQ(found[0].at("confirmed"), "repeat");
  EXPECT_EQ(found[1].at("kind"), "behind");
  EXPECT_EQ(found[0].at("site"), site);
  EXPECT_EQ(found[0].at("origin").at("scope"), "message");
  EXPECT_EQ(found[0].at("origin").at("store"), "notifications");
  EXPECT_EQ(found[0].at("store"), kStore);
  EXPECT_EQ(found[0].at("store_kind"), "redis");
  EXPECT_EQ(found[0].at("server"), Url("b1"));
  EXPECT_LT(std::stoull(found[0].at("seen").at("counter").get<std::string>()),
            std::stoull(found[0].at("wanted").at("counter").get<std::string>()));
  EXPECT_GT(found[0].at("visible_after").get<double>(), 0.02);
  EXPECT_LT(found[0].at("visible_after").get<double>(), 20.0);
  EXPECT_EQ(recorded.Counted("followed_reads"), 2);
  for (const Json& line : recorded.Lines()) EXPECT_EQ(line.dump().find("private"), std::string::npos);
  const auto [status, said] = recorded.Said(std::string(ANTIPODE_COMMAND) + " check");
  EXPECT_EQ(status, 1) << said;  // confirmed violations
  EXPECT_NE(said.find(site), std::string::npos) << said;
  const auto [fits, why] = recorded.Said(std::string(ANTIPODE_PYTHON) + " -c '" + R"(
import json, jsonschema, pathlib, sys
schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
for path in pathlib.Path(sys.argv[2]).iterdir():
    for line in path.read_text().splitlines():
        jsonschema.validate(json.loads(line), schema)
' )" + ANTIPODE_SCHEMA);
  EXPECT_EQ(fits, 0) << why;
}

// REC-14: what has not changed since is behind, what has is stale.
TEST_F(FollowedReadsTest, EveryDeterministicReadIsRepeated) {
  Connection writer = Wrapped("a");
  Connection reader = Wrapped("b1");
  const std::vector<std::vector<std::string>> reads = {{"GET", "text"},
                                                       {"MGET", "text", "none"},
                                                       {"EXISTS", "text"},
                                                       {"HGETALL", "hash"},
                                                       {"SMEMBERS", "set"},
                                                       {"ZRANGE", "sorted", "0", "-1", "WITHSCORES"},
                                                       {"XRANGE", "stream", "-", "+"},
                                                       {"LLEN", "list"}};
  {
    const Recorded recorded;
    const Scope scope;
    Fill(writer);
    for (const auto& read : reads) Send(reader, read);
    for (const Json& record : recorded.Findings(reads.size())) EXPECT_EQ(record.at("kind"), "stale") << record;
  }
  const Recorded recorded;
  const Scope scope;
  Send(writer, {"SET", "other", "v"});
  for (const auto& read : reads) Send(reader, read);
  for (const Json& record : recorded.Findings(reads.size())) EXPECT_EQ(record.at("kind"), "behind") << record;
}

// REC-14: what is random, of times, or in no order says something else of the same data.
TEST_F(FollowedReadsTest, OtherReadsAreNot) {
  Connection writer = Wrapped("a");
  Connection reader = Wrapped("b1");
  const std::vector<std::vector<std::string>> reads = {
      {"RANDOMKEY"}, {"HKEYS", "hash"}, {"TTL", "text"}, {"KEYS", "*"}};
  const Recorded recorded;
  const Scope scope;
  Fill(writer);
  for (const auto& read : reads) Send(reader, read);
  for (const Json& record : recorded.Findings(reads.size())) EXPECT_EQ(record.at("kind"), "behind") << record;
}

// REC-14: never from another database than the application's connection reads.
TEST_F(FollowedReadsTest, ARepeatReadsTheSameDatabase) {
  ASSERT_TRUE(a_.Do({"SELECT", "3"}));
  ASSERT_TRUE(a_.Do({"SET", "k", "there"}));
  ASSERT_TRUE(b1_.Do({"SELECT", "3"}));
  ASSERT_TRUE(Until([&] { return b1_.Get("k").has_value(); }));
  Connection writer = Wrapped("a");
  redisContext* const chosen = Connect("b1");
  freeReplyObject(redisCommand(chosen, "SELECT 3"));  // before it is wrapped: nobody says which
  auto before = Wrap(chosen, Options(kStore));
  ASSERT_TRUE(before.ok());
  Connection later = Wrapped("b1");
  Send(later, {"SELECT", "3"});  // and after
  const Recorded recorded;
  const Scope scope;
  Send(writer, {"SET", "elsewhere", "v"});
  EXPECT_EQ(before->Command("GET k").text(), "there");
  EXPECT_EQ(later.Command("GET k").text(), "there");
  for (const Json& record : recorded.Findings(2)) EXPECT_EQ(record.at("kind"), "behind") << record;
  Plain third("a");
  ASSERT_TRUE(third.Do({"SELECT", "3"}));
  ASSERT_TRUE(third.Do({"DEL", "k"}));
  EXPECT_EQ(recorded.Findings(2).size(), 2U);
}

// REC-14: the same value with another lineage is the same value.
TEST_F(FollowedReadsTest, WhatRestsBesideAValueIsNoPartOfIt) {
  for (const std::string rest : {"field", "envelope"}) {
    const std::string name = kStore + "-" + rest;
    StoreOptions options(name);
    options.RestIn(rest);
    if (rest == "envelope") options.EnvelopeKeys("post:*");
    Connection writer = Wrapped("a", options);
    Connection reader = Wrapped("b1", options);
    const std::vector<std::string> read = rest == "field" ? std::vector<std::string>{"HGETALL", "h-" + rest}
                                                          : std::vector<std::string>{"GET", "post:1"};
    const std::vector<std::string> write = rest == "field" ? std::vector<std::string>{"HSET", "h-" + rest, "f", "v"}
                                                           : std::vector<std::string>{"SET", "post:1", "v"};
    for (const char* kind : {"stale", "behind"}) {
      const Recorded recorded;
      const Scope scope;
      Send(writer, write);
      Send(reader, read);
      EXPECT_EQ(recorded.Findings().front().at("kind"), kind) << rest;
    }
  }
}

// A pipeline's reads are followed each, and what it gives the application is what it was.
TEST_F(FollowedReadsTest, ReadsOfAPipeline) {
  Connection writer = Wrapped("a");
  Connection reader = Wrapped("b1");
  const Recorded recorded;
  const Scope scope;
  Send(writer, {"SET", "piped", "v"});
  reader.Append("GET piped");
  reader.Append("PING");
  reader.Append("TTL piped");
  Reply reply;
  ASSERT_EQ(reader.GetReply(&reply), REDIS_OK);
  EXPECT_EQ(reply->type, REDIS_REPLY_NIL);
  ASSERT_EQ(reader.GetReply(&reply), REDIS_OK);
  EXPECT_EQ(reply.text(), "PONG");
  ASSERT_EQ(reader.GetReply(&reply), REDIS_OK);
  std::map<std::string, int> kinds;
  for (const Json& record : recorded.Findings(2)) ++kinds[record.at("kind")];
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"behind", 1}, {"stale", 1}}));
}

// REC-12, REC-13: neither INFO nor MULTI, also where a read would wait.
TEST_F(FollowedReadsTest, NothingIsAskedOnTheApplicationsConnection) {
  Connection writer = Wrapped("a");
  redisContext* const context = Connect("b1");
  auto reader = Wrap(context, Options(StoreOptions(kStore).WaitOnRead(true).Timeout(30s)));
  ASSERT_TRUE(reader.ok());
  const Reply id = reader->Command("CLIENT ID");
  const Recorded recorded;
  const Scope scope;
  Send(writer, {"SET", "k", "v"});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(reader->Command("GET k")->type, REDIS_REPLY_NIL);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  const Reply list = b1_.Do({"CLIENT", "LIST", "ID", std::to_string(id->integer)});
  EXPECT_NE(list.text().find(" cmd=get "), std::string_view::npos) << list.text();
  recorded.Findings();
}

TEST_F(FollowedReadsTest, AReadOfWhatIsThereIsNoFinding) {
  Connection writer = Wrapped("a");
  Connection reader = Wrapped("b1");
  const Recorded recorded;
  const Scope scope;
  Send(writer, {"SET", "k", "v"});
  ASSERT_TRUE(Until([&] { return b1_.Get("k").has_value(); }));
  EXPECT_EQ(reader.Command("GET k").text(), "v");
  EXPECT_TRUE(Barrier().dry_run());
  ASSERT_TRUE(Until([&] {
    for (const Json& line : recorded.Lines()) {
      if (line.at("kind") == "barrier") return true;
    }
    return false;
  }));
  for (const Json& line : recorded.Lines()) EXPECT_EQ(line.at("kind"), "barrier") << line;
  EXPECT_EQ(recorded.Counted("followed_reads"), 1);
}

}  // namespace
}  // namespace antipode::redis
