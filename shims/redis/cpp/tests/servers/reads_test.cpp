// Reads that wait, and what values depend on (SHIM-12, SHIM-13, BAR-50, BAR-51).
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "../src/store/store_impl.h"
#include "region.h"

namespace antipode::redis {
namespace {

using ReadsTest = PostsTest;

TEST_F(ReadsTest, ANativeReadAddsNothing) {  // SHIM-12
  Connection a = Wrapped("a");
  Written(a, "k", "1");
  Scope scope;
  EXPECT_EQ(a.Command("GET k").text(), "1");
  EXPECT_TRUE(scope->lineage().empty());
}

TEST_F(ReadsTest, WhatWasReadIsCoveredByThePositionOfTheServerThatAnswered) {  // SHIM-13
  Connection a = Wrapped("a");
  Connection b = Wrapped("b1");
  const Lineage written = Written(a, "k", "covered");
  ASSERT_TRUE(Look(written).satisfied());
  Scope scope;
  Reading seen;
  EXPECT_EQ(b.Command("GET k").text(), "covered");
  EXPECT_TRUE(written <= seen.lineage()) << seen.lineage();
  EXPECT_TRUE(scope->lineage().empty());
  b.Append("GET k");
  b.Append("GET k");
  Reply r;
  ASSERT_EQ(b.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text(), "covered");
  ASSERT_EQ(b.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text(), "covered");
}

TEST_F(ReadsTest, ReadsOfPipelinesAndTransactionsAreCoveredToo) {
  Connection a = Wrapped("a");
  const Lineage written = Written(a, "k", "1");
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"GET k", "GET k"}, {"MULTI", "GET k", "EXEC"}}) {
    Scope scope;
    Reading seen;
    for (const char* each : words) a.Append(each);
    for (std::size_t place = 0; place < words.size(); ++place) {
      Reply r;
      ASSERT_EQ(a.GetReply(&r), REDIS_OK);
    }
    EXPECT_TRUE(written <= seen.lineage()) << words[0];
  }
}

// BAR-51: nothing is sent, as the connection, which is cut, does not say so.
TEST_F(ReadsTest, WhatNamesTheStoreOtherwiseIsRefusedBeforeItIsSent) {
  Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  std::string other = kStore;
  other.insert(1, "_");
  const Lineage misspelt(WriteId::Make(other, "k", Ordered{"epoch", 1}).value());
  ASSERT_EQ(b.Append("MULTI"), REDIS_OK) << "outside the scope";
  ASSERT_EQ(shutdown(b.context()->fd, SHUT_RDWR), 0);
  {
    const Scope scope(misspelt);
    for (const char* command : {"GET k", "EVAL s 0"}) {
      EXPECT_EQ(b.Append(command), REDIS_ERR) << command;
      ASSERT_NE(b.refused(), nullptr) << command;
      EXPECT_EQ(b.refused()->message_code, "AP107") << b.refused()->message;
    }
    EXPECT_EQ(b.Append("SET k 1"), REDIS_OK) << "it reads nothing";
  }
  b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  ASSERT_EQ(shutdown(b.context()->fd, SHUT_RDWR), 0);
  const Reading after(ReadingOptions{misspelt, false});
  const Reply refused = b.Command("GET k");
  ASSERT_NE(refused.error(), nullptr);
  EXPECT_EQ(refused.error()->message_code, "AP107") << refused.error()->message;
  EXPECT_EQ(b.Append("GET k"), REDIS_ERR);
}

// BAR-51: what was sent before its scope depended on it gives no data.
TEST_F(ReadsTest, DataAreNotTakenByWhoNamesTheStoreOtherwise) {
  Connection a = Wrapped("a");
  Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  std::string other = kStore;
  other.insert(1, "_");
  const Scope scope;
  ASSERT_EQ(b.Append("GET k"), REDIS_OK);
  scope->Transfer(Lineage(WriteId::Make(other, "k", Ordered{"epoch", 1}).value()));
  Reply reply;
  ASSERT_EQ(b.GetReply(&reply), REDIS_OK);
  ASSERT_NE(reply.error(), nullptr);
  EXPECT_EQ(reply.error()->message_code, "AP107") << reply.error()->message;
}

TEST_F(ReadsTest, AReadWaitsOnItsOwnConnectionForTheScopesWrites) {  // BAR-50
  Connection a = Wrapped("a");
  Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  TheLab().Lag("redis", "b2", "100ms");
  for (int turn = 0; turn < 3; ++turn) {
    const std::string value = "value " + std::to_string(turn);
    const Lineage written = Written(a, "waited", value);
    Scope scope(written);
    EXPECT_EQ(b.Command("GET waited").text(), value);
    b.Append("GET waited");
    Reply r;
    ASSERT_EQ(b.GetReply(&r), REDIS_OK);
    EXPECT_EQ(r.text(), value);
  }
}

TEST_F(ReadsTest, ReadingAfterALineageWaitsForIt) {  // BAR-51
  Connection a = Wrapped("a");
  Connection b = Wrapped("b2");
  TheLab().Lag("redis", "b2", "100ms");
  const Lineage written = Written(a, "after", "new");
  Scope scope;
  ReadingOptions options;
  options.after = written;
  options.merge = true;
  {
    Reading seen(options);
    EXPECT_EQ(b.Command("GET after").text(), "new");
  }
  EXPECT_TRUE(written <= scope->lineage());
  const Lineage later = Written(a, "after", "newer");
  options.after = later;
  Reading seen(options);
  for (const char* each : {"MULTI", "GET after"}) b.Command(each);
  const Reply r = b.Command("EXEC");
  ASSERT_TRUE(r);
  ASSERT_EQ(r->elements, 1U);
  EXPECT_STREQ(r->element[0]->str, "newer");
}

// SHIM-44: whatever can return data waits, or is refused.
TEST_F(ReadsTest, WhatMayReadWaitsToo) {
  Connection a = Wrapped("a");
  Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  TheLab().Lag("redis", "b2", "100ms");
  const std::string script = "return redis.call('GET', KEYS[1])";
  int turn = 0;
  const auto next = [&] { return "value " + std::to_string(++turn); };
  {
    const std::string value = next();
    Scope scope(Written(a, "maybe", value));
    EXPECT_EQ(b.Command("EVAL %s 1 maybe", script.c_str()).text(), value);
  }
  {
    const std::string value = next();
    Scope scope(Written(a, "maybe", value));
    b.Append("EVAL %s 1 maybe", script.c_str());
    Reply r;
    ASSERT_EQ(b.GetReply(&r), REDIS_OK);
    EXPECT_EQ(r.text(), value);
  }
  for (const bool at_once : {false, true}) {
    const std::string value = next();
    Scope scope(Written(a, "maybe", value));
    Reply r;
    b.Append("MULTI");
    if (!at_once) b.GetReply(&r);
    b.Append("EVAL %s 1 maybe", script.c_str());
    b.Append("EXEC");
    for (int reply = at_once ? 0 : 1; reply < 3; ++reply) ASSERT_EQ(b.GetReply(&r), REDIS_OK);
    ASSERT_EQ(r->elements, 1U);
    EXPECT_STREQ(r->element[0]->str, value.c_str());
  }
}

// SHIM-47: the question is still open on the connection, and the next command would take its answer.
TEST_F(ReadsTest, AServerThatDoesNotAnswerEndsTheWaitAndTheConnection) {
  Connection a = Wrapped("a");
  for (const bool appended : {false, true}) {
    Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(1s));
    ASSERT_EQ(b.SetTimeout(timeval{30, 0}), REDIS_OK);
    TheLab().Freeze("redis", "b2");
    Scope scope(Written(a, "frozen", appended ? "2" : "1"));
    const auto began = std::chrono::steady_clock::now();
    Reply r;
    if (appended) {
      b.Append("GET frozen");
      EXPECT_EQ(b.GetReply(&r), REDIS_ERR);
    } else {
      r = b.Command("GET frozen");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
    TheLab().Thaw("redis", "b2");
    EXPECT_FALSE(r);
    ASSERT_NE(r.error(), nullptr);
    EXPECT_EQ(r.error()->code, ErrorCode::kTimedOut) << r.error()->message;
    EXPECT_NE(b.err(), 0);
    ASSERT_EQ(b.Reconnect(), REDIS_OK);
    EXPECT_TRUE(Until([&] { return b.Command("GET frozen").text() == (appended ? "2" : "1"); }));
  }
}

// BAR-52: the application may lead the connection elsewhere; hiredis connects there when it is made anew.
TEST_F(ReadsTest, AConnectionThatIsLedElsewhereMakesThatServerKnown) {
  Connection writer = Wrapped("a", StoreOptions(kStore).Replicas({Url("a")}));
  auto reader = Wrap(Connect("a"), StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->store()->replicas().size(), 1U);
  reader->context()->tcp.port = TheLab().server("redis", "b1").port;
  ASSERT_EQ(reader->Reconnect(), REDIS_OK);
  EXPECT_EQ(reader->store()->replicas().size(), 2U);
  TheLab().Partition("redis", "b1");
  const Lineage written = Written(writer, "led", "elsewhere");
  EXPECT_FALSE(Look(written, 300ms).satisfied());
  TheLab().Heal("redis");
  Scope scope(written);
  EXPECT_EQ(reader->Command("GET led").text(), "elsewhere");
  EXPECT_TRUE(Look(written, 10s).satisfied());
}

// BAR-62: nobody names it, and no connection is open there any more.
TEST_F(ReadsTest, AServerLeavesToWhichNoConnectionLeadsAnyMore) {
  Connection writer = Wrapped("a", StoreOptions(kStore).Replicas({Url("a")}));
  auto reader = Wrap(Connect("b1"), StoreOptions(kStore));
  ASSERT_TRUE(reader.ok());
  const auto left = [&] { return Look(Written(writer, "left"), 500ms).store(kStore).LeftOut(); };
  const auto has = [](const std::vector<std::string>& all, const std::string& server) {
    return std::find(all.begin(), all.end(), Url(server)) != all.end();
  };
  reader->context()->tcp.port = TheLab().server("redis", "b2").port;
  ASSERT_EQ(reader->Reconnect(), REDIS_OK);
  EXPECT_TRUE(has(reader->store()->replicas(), "b2"));
  EXPECT_TRUE(Until([&] { return has(left(), "b1"); }));
  EXPECT_FALSE(has(reader->store()->replicas(), "b1"));
  EXPECT_FALSE(has(left(), "b2"));
  Plain("b2").Do({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(Until([&] { return has(left(), "b2"); }));
  EXPECT_FALSE(has(reader->store()->replicas(), "b2"));
  ASSERT_EQ(redisReconnect(reader->context()), REDIS_OK);  // by hiredis itself
  EXPECT_TRUE(reader->Command("PING"));
  EXPECT_TRUE(has(reader->store()->replicas(), "b2"));
  EXPECT_FALSE(has(left(), "b2"));
}

TEST_F(ReadsTest, EachReadOfABatchWaitsForItsOwnScope) {  // SHIM-44, SCOPE-24
  Connection a = Wrapped("a");
  Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  TheLab().Lag("redis", "b2", "100ms");
  Written(a, "batch", "old");
  Scope outer;
  b.Append("GET batch");
  const Lineage written = Written(a, "batch", "new");
  Scope inner(written);
  b.Append("GET batch");
  Reply r;
  ASSERT_EQ(b.GetReply(&r), REDIS_OK);
  ASSERT_EQ(b.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text(), "new");
}

TEST_F(ReadsTest, InsideAMultiWhatNobodyHasWaitedForIsRefused) {  // SHIM-44, SHIM-48
  Connection a = Wrapped("a");
  Connection b = Wrapped("b1", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  Scope scope;
  ASSERT_TRUE(b.Command("MULTI"));
  ASSERT_TRUE(a.Command("SET k new"));
  for (const char* read : {"GET k", "EVAL return 0"}) {
    const Reply r = b.Command(read);
    ASSERT_NE(r.error(), nullptr) << read;
    EXPECT_EQ(r.error()->code, ErrorCode::kUnproven);
    EXPECT_EQ(r.error()->message_code, "AP514");
  }
  ASSERT_TRUE(b.Command("DISCARD"));
  EXPECT_EQ(b.Command("GET k").text(), "new");
  Scope later(Written(a, "k", "newer"));
  b.Append("MULTI");
  const Lineage newest = Written(a, "k", "newest");
  later->Transfer(newest);
  b.Append("GET k");  // the server has no MULTI yet: it is waited for
  b.Append("EXEC");
  Reply r;
  for (int reply = 0; reply < 3; ++reply) ASSERT_EQ(b.GetReply(&r), REDIS_OK);
  EXPECT_STREQ(r->element[0]->str, "newest");
}

TEST_F(ReadsTest, WhatMayWriteIsNotSentWhereItWaitsInVain) {  // SHIM-44
  Connection a = Wrapped("a", StoreOptions(kStore).WaitOnRead(true).Timeout(200ms));
  Plain("a").Do({"SET", "counter", "1"});
  const Lineage unknown(*WriteId::Position(kStore, "never", 1));
  Scope scope(unknown);
  for (const char* each :
       {"INCR counter", "GETSET counter 9", "EVAL redis.call('SET','counter','9') 0", "COPY counter other"}) {
    const Reply r = a.Command(each);
    ASSERT_NE(r.error(), nullptr) << each;
    EXPECT_EQ(a.Append(each), REDIS_ERR) << each;
    ASSERT_NE(a.refused(), nullptr) << each;
  }
  EXPECT_EQ(Plain("a").Get("counter"), "1");
  EXPECT_TRUE(scope->pending().empty());
  EXPECT_EQ(a.Command("SET counter 2").text(), "OK") << "it answers no data";
}

TEST_F(ReadsTest, AReadThatWaitsInVainObeysThePolicy) {
  Connection a = Wrapped("a");
  Connection b = Wrapped("b1", StoreOptions(kStore).WaitOnRead(true).Timeout(200ms));
  TheLab().Partition("redis", "b1");
  Scope scope(Written(a, "vain"));
  const Reply r = b.Command("GET vain");
  EXPECT_FALSE(r);
  ASSERT_NE(r.error(), nullptr);
  EXPECT_EQ(r.error()->code, ErrorCode::kTimedOut);
  EXPECT_NE(r.error()->message.find(kStore), std::string::npos) << r.error()->message;
  EXPECT_EQ(b.err(), 0);  // the connection is as good as before
  EXPECT_EQ(b.Command("PING").text(), "PONG");
  b.Append("GET vain");
  Reply appended;
  ASSERT_EQ(b.GetReply(&appended), REDIS_OK);
  ASSERT_NE(appended.error(), nullptr);
  SettingWords words;
  words.on_timeout = Policy::kProceed;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_TRUE(b.Command("GET vain"));
}

TEST_F(ReadsTest, AReadParkedInAPartitionGoesOnWhenItHeals) {
  Connection a = Wrapped("a");
  Connection b = Wrapped("b1", StoreOptions(kStore).WaitOnRead(true).Timeout(30s));
  TheLab().Partition("redis", "b1");
  const Lineage written = Written(a, "parked", "there");
  std::string got;
  std::thread reader([&] {
    Scope scope(written);
    got = b.Command("GET parked").text();
  });
  EXPECT_TRUE(Until([] { return FindStore(kStore).value()->impl().parked() > 0; }));
  TheLab().Heal("redis");
  reader.join();
  EXPECT_EQ(got, "there");
}

TEST_F(ReadsTest, AReadThatBlocksWaitsBeforeItBlocks) {
  Connection a = Wrapped("a");
  Connection b = Wrapped("b2", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  TheLab().Lag("redis", "b2", "100ms");
  Plain("a").Do({"DEL", "stream"});
  Scope writing;
  ASSERT_TRUE(a.Command("XADD stream 1-1 f v"));
  const Reply r = b.Command("XREAD BLOCK 50 STREAMS stream 0");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->type, REDIS_REPLY_ARRAY);
}

TEST_F(ReadsTest, AWatchIsNotEndedByAReadThatWaits) {
  Connection a = Wrapped("a", StoreOptions(kStore).WaitOnRead(true).Timeout(10s));
  Scope scope;
  ASSERT_TRUE(a.Command("SET watched 1"));
  ASSERT_EQ(a.Command("WATCH watched").text(), "OK");
  EXPECT_EQ(a.Command("GET watched").text(), "1");
  Plain("a").Do({"SET", "watched", "2"});
  a.Command("MULTI");
  a.Command("SET watched 3");
  EXPECT_EQ(a.Command("EXEC")->type, REDIS_REPLY_NIL);
  EXPECT_EQ(Plain("a").Get("watched"), "2");
}

TEST_F(ReadsTest, AutomaticMergingMakesTheScopeDependOnWhatItReads) {
  SettingWords words;
  words.auto_merge = true;
  ASSERT_TRUE(Configure(words).ok());
  Connection a = Wrapped("a");
  const Lineage written = Written(a, "merged", "1");
  for (const bool pipeline : {false, true}) {
    Scope scope;
    if (pipeline) {
      a.Append("GET merged");
      a.Append("PING");
      Reply r;
      a.GetReply(&r);
      a.GetReply(&r);
    } else {
      a.Command("GET merged");
    }
    EXPECT_TRUE(written <= scope->lineage()) << pipeline;
  }
}

TEST_F(ReadsTest, ErrorsOfReadsAreTheServersOwn) {
  Connection a = Wrapped("a");
  Written(a, "text", "1");
  Scope scope;
  Reading seen;
  EXPECT_TRUE(a.Command("HGET text f").IsError());
  EXPECT_TRUE(a.Command("GET").IsError());
  EXPECT_EQ(a.Command("GET nothing")->type, REDIS_REPLY_NIL);
  EXPECT_EQ(a.Command("GET text").text(), "1");
}

TEST_F(ReadsTest, DryRunNeverWaits) {  // BAR-48
  SettingWords words;
  words.mode = Mode::kDryRun;
  ASSERT_TRUE(Configure(words).ok());
  Connection a = Wrapped("a");
  Connection b = Wrapped("b1", StoreOptions(kStore).WaitOnRead(true).Timeout(30s));
  TheLab().Partition("redis", "b1");
  Scope scope(Written(a, "dry"));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(b.Command("GET dry"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

}  // namespace
}  // namespace antipode::redis
