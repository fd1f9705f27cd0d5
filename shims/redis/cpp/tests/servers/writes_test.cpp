// Every form of write has its position, and hiredis' own replies (SHIM-1, SHIM-2, SHIM-6 to SHIM-8, SHIM-11,
// EPOCH-1 to EPOCH-5).
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>

#include "commands.h"
#include "region.h"

namespace antipode::redis {
namespace {

using WritesTest = PostsTest;

TEST_F(WritesTest, ApplicationsReplyIsHiredisOwnAndThePositionJoinsTheScope) {
  Connection posts = Wrapped("a");
  Scope scope;
  const std::string body("x\0y", 3);
  const Reply r = posts.Command("SET %s %b", "post:42", body.data(), body.size());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->type, REDIS_REPLY_STATUS);
  EXPECT_EQ(r.text(), "OK");
  EXPECT_EQ(Plain("a").Get("post:42"), body);
  const Ordered position = PositionOf(scope->lineage());
  const Reply info = Plain("a").Do({"INFO", "replication"});
  EXPECT_NE(std::string(info.text()).find("master_replid:" + position.epoch), std::string::npos);
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope->lineage().IsComplete());
  EXPECT_EQ(posts.err(), 0);
}

TEST_F(WritesTest, PositionsGrowAndTheLineageDoesNot) {  // a thousand writes leave one entry
  Connection posts = Wrapped("a");
  Scope scope;
  std::uint64_t last = 0;
  for (int number = 0; number < 50; ++number) {
    ASSERT_TRUE(posts.Command("SET post:%d v", number));
    const std::uint64_t now = PositionOf(scope->lineage()).counter;
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_EQ(scope->lineage().size(), 1U);
}

TEST_F(WritesTest, EveryFormOfWriteIsRecordedAndNothingElse) {
  Connection posts = Wrapped("a");
  Plain("a").Do({"DEL", "list", "hash", "k"});
  for (const char* write :
       {"SET k 1", "INCR k", "EXPIRE k 100", "GETEX k PERSIST", "RPUSH list c a b", "SORT list ALPHA STORE list2",
        "HSET hash f 1", "GETDEL k", "LPOP list", "DEL hash", "XADD stream * f v", "BLPOP list 1",
        "EVAL redis.call('SET','k','1') 0", "UNLINK nothing", "XGROUP CREATE stream g $"}) {
    Scope scope;
    const Reply r = posts.Command(write);
    ASSERT_TRUE(r) << write;
    const bool is_again = std::string(write).rfind("XGROUP", 0) == 0 && r.IsError();
    if (is_again) continue;  // the group of an earlier run
    ASSERT_FALSE(r.IsError()) << write << ": " << r.text();
    EXPECT_EQ(scope->lineage().OfStore(kStore).size(), 1U) << write;
    EXPECT_TRUE(scope->pending().empty()) << write;
  }
  for (const char* other :
       {"GET k", "PING", "PUBLISH c m", "CONFIG GET maxmemory", "SORT list ALPHA", "DBSIZE", "WATCH k", "UNWATCH"}) {
    Scope scope;
    ASSERT_TRUE(posts.Command(other)) << other;
    EXPECT_TRUE(scope->lineage().empty()) << other;
  }
}

TEST_F(WritesTest, AnErrorLeavesNothingButForScripts) {
  Connection posts = Wrapped("a");
  ASSERT_TRUE(posts.Command("SET k text"));
  for (const char* refused : {"LPUSH k 1", "SET k", "INCR k", "EVALSHA %040d 0"}) {
    Scope scope;
    const Reply r = posts.Command(refused, 0);
    ASSERT_TRUE(r);
    EXPECT_TRUE(r.IsError()) << refused;
    EXPECT_TRUE(scope->lineage().empty()) << refused;
    EXPECT_TRUE(scope->pending().empty()) << refused;
  }
  Scope scope;  // what it wrote before its error stays
  const Reply r = posts.Command("EVAL %s 0", "redis.call('SET','k2','1') return redis.call('INCR','k')");
  ASSERT_TRUE(r.IsError());
  PositionOf(scope->lineage());
}

TEST_F(WritesTest, APipelineAsksOnceBehindItsLastCommand) {  // SHIM-7
  Connection posts = Wrapped("a");
  Scope scope;
  for (int number = 0; number < 20; ++number) ASSERT_EQ(posts.Append("INCR counter:%d", number), REDIS_OK);
  EXPECT_EQ(scope->pending().size(), 1U);  // pending from the first queued command that may write (SCOPE-14)
  EXPECT_FALSE(scope->Outgoing()->IsComplete());
  const long long before = Questions("a");
  for (int number = 0; number < 20; ++number) {
    EXPECT_EQ(scope->pending().size(), 1U);
    Reply r;
    ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
    EXPECT_EQ(r->type, REDIS_REPLY_INTEGER);
  }
  EXPECT_TRUE(scope->pending().empty());
  PositionOf(scope->lineage());
  EXPECT_TRUE(scope->Outgoing()->IsComplete());
  EXPECT_LT(Questions("a") - before, 12);  // one of ours; the marker begins now and asks some, too
}

TEST_F(WritesTest, RepliesOfOverlappingPipelinesStayInOrder) {
  Connection posts = Wrapped("a");
  Scope scope;
  Plain("a").Do({"DEL", "n"});
  Reply r;
  posts.Append("INCR n");
  posts.Append("INCR n");
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r->integer, 1);
  posts.Append("GET n");
  posts.Append("INCR n");
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r->integer, 2);
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text(), "2");
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r->integer, 3);
  EXPECT_TRUE(scope->pending().empty());
  PositionOf(scope->lineage());
}

TEST_F(WritesTest, APipelineOfTwoScopesServesBoth) {
  Connection posts = Wrapped("a");
  Scope outer;
  posts.Append("SET one 1");
  ScopePtr inner;
  {
    Scope scope;
    inner = scope.shared();
    posts.Append("SET two 2");
    Reply r;
    ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
    ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
    PositionOf(scope->lineage());
  }
  PositionOf(outer->lineage());
}

TEST_F(WritesTest, ATransactionIsPendingUntilExecAndThenHasItsPosition) {  // SHIM-11
  Connection posts = Wrapped("a");
  Scope scope;
  ASSERT_EQ(posts.Command("MULTI").text(), "OK");
  EXPECT_TRUE(scope->pending().empty());
  ASSERT_EQ(posts.Command("SET k 1").text(), "QUEUED");
  ASSERT_EQ(posts.Command("GET k").text(), "QUEUED");
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_FALSE(scope->Outgoing()->IsComplete());
  EXPECT_TRUE(scope->Known().empty());
  const Reply r = posts.Command("EXEC");
  ASSERT_EQ(r->type, REDIS_REPLY_ARRAY);
  ASSERT_EQ(r->elements, 2U);  // nothing of ours is in it
  EXPECT_TRUE(scope->pending().empty());
  PositionOf(scope->lineage());
}

// SCOPE-24: each scope in which a command of it was sent has what becomes of it, whatever scope began it, or none.
TEST_F(WritesTest, ATransactionOfSeveralScopes) {
  Connection posts = Wrapped("a");
  std::thread([&] { posts.Command("MULTI"), posts.Command("SET k:outside 1"); }).join();
  Scope outer;
  posts.Command("SET k:outer 1");
  Scope inner;
  posts.Command("SET k:inner 1");
  EXPECT_FALSE(inner->lineage().IsComplete({kStore}));
  ASSERT_TRUE(posts.Command("EXEC"));
  for (const Scope* scope : {&outer, &inner}) {
    EXPECT_TRUE((*scope)->pending().empty());
    EXPECT_EQ((*scope)->lineage().OfStore(kStore).size(), 1U);
    EXPECT_TRUE(Look((*scope)->lineage()).complete());
  }
  EXPECT_EQ(Plain("b1").Get("k:inner"), "1");
  Scope dropped;
  posts.Command("MULTI");
  posts.Command("SET k:dropped 1");
  Scope too;
  posts.Command("SET k:dropped 1");
  posts.Command("DISCARD");
  EXPECT_TRUE(dropped->pending().empty() && too->pending().empty());
  EXPECT_TRUE(too->lineage().empty());
}

// Sends what a scope appended that has ended meanwhile, takes its replies, or loses the connection (SCOPE-24).
TEST_F(WritesTest, WhoSendsWhatAnotherScopeQueuedHasItsPosition) {
  Connection posts = Wrapped("a");
  Reply r;
  const auto queue = [&](const std::vector<const char*>& commands) {
    const Scope ended;
    for (const char* each : commands) posts.Append(each);
  };
  const auto take = [&](std::size_t replies) {
    for (std::size_t reply = 0; reply < replies; ++reply) ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  };
  {
    queue({"SET k 1", "INCR k"});
    const Scope sends;
    take(1);
    EXPECT_FALSE(sends->Outgoing()->IsComplete()) << "it may have been done, and nobody knows its position";
    const Scope takes;
    take(1);
    for (const Scope* scope : {&sends, &takes}) {
      PositionOf((*scope)->lineage());
      EXPECT_TRUE((*scope)->pending().empty());
    }
  }
  for (const char* ends : {"EXEC", "DISCARD"}) {
    queue({"MULTI", "SET k 2"});
    const Scope scope;
    posts.Append(ends);
    take(3);
    EXPECT_EQ(scope.lineage().OfStore(kStore).size(), std::string_view(ends) == "EXEC" ? 1U : 0U);
    EXPECT_TRUE(scope->pending().empty() && scope.lineage().IsComplete());
  }
  queue({"MULTI", "GET k"});
  const Scope reads;
  ASSERT_EQ(posts.Append("EXEC"), REDIS_OK);
  take(3);
  EXPECT_TRUE(reads.lineage().empty()) << "a transaction that only read (SCOPE-15)";
  for (const bool is_multi : {false, true}) {
    queue(is_multi ? std::vector<const char*>{"MULTI", "SET k 3"} : std::vector<const char*>{"SET k 3"});
    const Scope lost;
    if (is_multi) posts.Append("EXEC");
    Plain("a").Do({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_EQ(posts.GetReply(&r), REDIS_ERR);
    EXPECT_EQ(lost->pending().size(), 1U);
    EXPECT_FALSE(lost.lineage().IsComplete({kStore})) << "SCOPE-17";
    ASSERT_EQ(posts.Reconnect(), REDIS_OK);
  }
}

TEST_F(WritesTest, ATransactionThatWasNotDoneLeavesNothing) {
  Connection posts = Wrapped("a");
  Scope scope;
  posts.Command("MULTI");
  posts.Command("SET k 1");
  ASSERT_EQ(posts.Command("DISCARD").text(), "OK");
  EXPECT_TRUE(scope->pending().empty());
  posts.Command("WATCH k");
  posts.Command("MULTI");
  posts.Command("SET k 2");
  Plain("a").Do({"SET", "k", "other"});
  EXPECT_EQ(posts.Command("EXEC")->type, REDIS_REPLY_NIL);
  EXPECT_TRUE(scope->pending().empty());
  posts.Command("MULTI");
  EXPECT_TRUE(posts.Command("SET k").IsError());
  posts.Command("SET k 3");
  EXPECT_TRUE(posts.Command("EXEC").IsError());
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope->lineage().empty());
}

TEST_F(WritesTest, ATransactionInAPipeline) {
  Connection posts = Wrapped("a");
  Scope scope;
  for (const char* each : {"SET before 1", "MULTI", "SET k 1", "INCR k", "EXEC", "GET k"}) posts.Append(each);
  std::vector<int> types;
  for (int place = 0; place < 6; ++place) {
    Reply r;
    ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
    types.push_back(r->type);
  }
  EXPECT_EQ(types, (std::vector<int>{REDIS_REPLY_STATUS, REDIS_REPLY_STATUS, REDIS_REPLY_STATUS, REDIS_REPLY_STATUS,
                                     REDIS_REPLY_ARRAY, REDIS_REPLY_STRING}));
  EXPECT_TRUE(scope->pending().empty());
  PositionOf(scope->lineage());
}

TEST_F(WritesTest, PubSubIsLeftAlone) {
  Connection posts = Wrapped("a");
  Scope scope;
  posts.Append("SET k 1");
  posts.Append("SUBSCRIBE one two");
  Reply r;
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text(), "OK");
  PositionOf(scope->lineage());
  for (int place = 0; place < 2; ++place) ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  Plain("a").Do({"PUBLISH", "two", "hello"});
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  ASSERT_EQ(r->elements, 3U);
  EXPECT_STREQ(r->element[2]->str, "hello");
  posts.Append("UNSUBSCRIBE");
  for (int place = 0; place < 2; ++place) ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  ASSERT_EQ(posts.Command("SET k 2").text(), "OK");
  EXPECT_TRUE(scope->pending().empty());
}

TEST_F(WritesTest, RepliesThatAreSwitchedOffLeaveAnIncompleteLineage) {
  Connection posts = Wrapped("a");
  Scope scope;
  posts.Append("SET k 1");
  posts.Append("CLIENT REPLY OFF");
  posts.Append("SET k 2");
  posts.Append("CLIENT REPLY ON");
  Reply r;
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);  // that of REPLY ON
  EXPECT_FALSE(scope->lineage().IsComplete({kStore}));
  EXPECT_TRUE(scope->pending().empty());
  ASSERT_EQ(posts.Command("SET k 3").text(), "OK");
}

TEST_F(WritesTest, ALostConnectionLeavesAnUnknownOutcomeAndReconnectingBeginsAnew) {  // SCOPE-17
  Connection posts = Wrapped("a");
  Scope scope;
  ASSERT_TRUE(posts.Command("SET k 1"));
  posts.SetTimeout(timeval{0, 100000});
  Plain("a").Do({"CLIENT", "PAUSE", "60000", "WRITE"});  // the answer does not come in time
  const Reply r = posts.Command("SET k 2");
  Plain("a").Do({"CLIENT", "UNPAUSE"});
  posts.SetTimeout(timeval{10, 0});
  EXPECT_FALSE(r);
  EXPECT_NE(posts.err(), 0);
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_FALSE(scope->Outgoing()->IsComplete({kStore}));
  {
    Scope other;  // nothing is sent any more: nothing is pending
    EXPECT_FALSE(posts.Command("SET k 3"));
    EXPECT_TRUE(other->pending().empty());
    ASSERT_EQ(posts.Reconnect(), REDIS_OK);
    ASSERT_EQ(posts.Command("SET k 4").text(), "OK");
    PositionOf(other->lineage());
  }
  EXPECT_EQ(scope->pending().size(), 1U);
}

TEST_F(WritesTest, WhatCannotBeFormattedIsHiredisError) {
  Connection posts = Wrapped("a");
  Scope scope;
  EXPECT_FALSE(posts.Command("SET k %y", 1));
  EXPECT_NE(posts.err(), 0);
  EXPECT_TRUE(scope->pending().empty());
}

TEST_F(WritesTest, ArgumentsByCountAndByList) {
  Connection posts = Wrapped("a");
  Scope scope;
  const char* words[] = {"SET", "k", "a\0b"};
  const std::size_t sizes[] = {3, 1, 3};
  ASSERT_EQ(posts.CommandArgv(3, words, sizes).text(), "OK");
  posts.AppendArgv(3, words, nullptr);
  Reply r;
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(Plain("a").Get("k"), "a");
  PositionOf(scope->lineage());
}

TEST_F(WritesTest, OutsideAnyScopeAWriteIsAnOrphan) {  // SCOPE-9
  Connection posts = Wrapped("a");
  ASSERT_EQ(posts.Command("SET k 1").text(), "OK");
  posts.Append("SET k 2");
  Reply r;
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text(), "OK");
}

TEST_F(WritesTest, AReplicaRefusesAndNothingIsRecorded) {
  Connection posts = Wrapped("b1");
  Scope scope;
  EXPECT_TRUE(posts.Command("SET k 1").IsError());
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_TRUE(scope->lineage().IsComplete());
}

TEST_F(WritesTest, ThreadsOfOneScopeEachWithAConnectionLoseNothing) {
  std::vector<Connection> connections;
  for (int number = 0; number < 4; ++number) connections.push_back(Wrapped("a"));
  Scope scope;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back(Carry([&connections, number] {
      for (int turn = 0; turn < 50; ++turn) {
        const Reply r = connections[static_cast<std::size_t>(number)].Command("SET k:%d:%d v", number, turn);
        EXPECT_EQ(r.text(), "OK");
      }
    }));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scope->lineage().OfStore(kStore).size(), 1U);
  EXPECT_TRUE(scope->pending().empty());
  const Reply info = Plain("a").Do({"INFO", "replication"});
  EXPECT_TRUE(scope->lineage().IsComplete());
  EXPECT_TRUE(Look(scope->lineage()).satisfied());
}

TEST_F(WritesTest, ModeOffAddsNothing) {  // BAR-48
  Connection posts = Wrapped("a", StoreOptions(kStore).InMode(Mode::kOff));
  Scope scope;
  const long long before = Questions("a");
  for (int turn = 0; turn < 10; ++turn) ASSERT_EQ(posts.Command("SET k 1").text(), "OK");
  EXPECT_LT(Questions("a") - before, 8);
  EXPECT_TRUE(scope->lineage().empty());
}

TEST_F(WritesTest, AForkBeginsAnew) {  // SCOPE-13
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot follow threads that begin in a forked child";
#endif
  Connection posts = Wrapped("a");
  const Lineage before = Written(posts, "parent");
  ASSERT_TRUE(Look(before).satisfied());
  const pid_t child = fork();
  if (child == 0) {
    auto own = Wrap(Connect("a"), Options(kStore));
    bool fine = own.ok();
    Scope scope;
    fine = fine && own->Command("SET child 1").text() == "OK";
    fine = fine && Barrier(scope->lineage(), BarrierOptions().Timeout(10s)).satisfied();
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(Look(Written(posts, "parent again")).satisfied());
}

TEST_F(WritesTest, TheTableOfCommandsIsTheServers) {
  const std::set<std::string> maybe = {"EVAL", "EVALSHA", "FCALL", "DEBUG", "MIGRATE", "PFDEBUG"};
  const std::set<std::string> by_words = {"SORT", "GEORADIUS", "GEORADIUSBYMEMBER", "FUNCTION", "XGROUP"};
  const Reply table = Plain("a").Do({"COMMAND"});
  ASSERT_EQ(table->type, REDIS_REPLY_ARRAY);
  for (std::size_t place = 0; place < table->elements; ++place) {
    const redisReply& command = *table->element[place];
    const std::string name = Spelled({command.element[0]->str, command.element[0]->len});
    if (by_words.count(name) > 0) continue;
    bool writes = false;
    for (std::size_t flag = 0; flag < command.element[2]->elements; ++flag) {
      writes = writes || std::string(command.element[2]->element[flag]->str) == "write";
    }
    const Kind kind = Classify({name});
    EXPECT_EQ(kind == Kind::kMaybe, maybe.count(name) > 0) << name;
    EXPECT_EQ(kind == Kind::kWrite, writes && maybe.count(name) == 0) << name;
  }
}

// What `Wrap` refuses (SHIM-3)

TEST_F(WritesTest, WhatCannotBeWrappedSaysWhy) {
  const auto code = [](Result<Connection> made) { return made.ok() ? ErrorCode::kTimedOut : made.error().code; };
  EXPECT_EQ(code(Wrap(nullptr, {"s"})), ErrorCode::kConfiguration);
  const lab::Server a = TheLab().server("redis", "a");
  EXPECT_EQ(code(Wrap(redisConnectNonBlock(a.host.c_str(), a.port), {"s"})), ErrorCode::kConfiguration);
  EXPECT_EQ(code(Wrap(Connect("a"), StoreOptions("s").RestIn("envelope"))), ErrorCode::kConfiguration);
  EXPECT_EQ(code(Wrap(Connect("a"), StoreOptions("s").RestIn("field").EnvelopeKeys("post:*"))),
            ErrorCode::kConfiguration);
  EXPECT_EQ(code(Wrap(Connect("a"), StoreOptions("s").RestIn("beside"))), ErrorCode::kConfiguration);
  EXPECT_EQ(code(Wrap(Connect("a"), StoreOptions("s").Replicas({"http://b"}))), ErrorCode::kConfiguration);
  EXPECT_EQ(
      code(Wrap(Connect("a"),
                StoreOptions("no store's name because it is much too long for the wire form to carry it, by far"))),
      ErrorCode::kConfiguration);
  EXPECT_FALSE(Register(StoreOptions("s").Replicas({"rediss://b"})).ok());
}

TEST_F(WritesTest, AConnectionThatIsNotOpenIsRefused) {  // BAR-52: its server would be judged by nobody
  const auto posts = Wrap(redisConnectWithTimeout("127.0.0.1", 1, timeval{1, 0}), {kStore});
  ASSERT_FALSE(posts.ok());
  EXPECT_EQ(posts.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(posts.error().message.find("Connection refused"), std::string::npos) << posts.error().message;
}

}  // namespace
}  // namespace antipode::redis
