// Replies of pipelines that are taken later than their commands were appended and sent (SHIM-48).
#include <string>
#include <vector>

#include "region.h"

namespace antipode::redis {
namespace {

const std::string kScript = "return redis.call('GET', KEYS[1])";

Options Waits() { return Options(kStore).WaitOnRead(true).Timeout(10s); }

// A primary `a`, and a replica `b` whose replies are taken in parts.
class MomentsTest : public PostsTest {
 protected:
  void SetUp() override {
    PostsTest::SetUp();
    const Lineage old = Written(a, "k", "old");
    ASSERT_TRUE(Look(old, 20s).satisfied());
    TheLab().Lag("redis", "b2", "100ms");
  }

  void ExpectPast(Reply& reply) {
    EXPECT_FALSE(reply) << reply.text();
    ASSERT_NE(reply.error(), nullptr);
    EXPECT_EQ(reply.error()->code, ErrorCode::kUnproven) << reply.error()->message;
    EXPECT_EQ(reply.error()->message_code, "AP514");
  }

  Reply Next(Connection& at) {
    Reply reply;
    EXPECT_EQ(at.GetReply(&reply), REDIS_OK) << at.errstr();
    return reply;
  }

  Connection a = Wrapped("a");
  Connection b = Wrapped("b2", Waits());
};

TEST_F(MomentsTest, WhatIsSentLaterShowsWhatItsScopeDependsOnByThen) {
  for (const bool by_script : {false, true}) {
    for (const bool in_multi : {false, true}) {
      const std::string value = "new " + std::to_string(by_script) + std::to_string(in_multi);
      Scope scope;
      if (in_multi) b.Append("MULTI");
      if (by_script) {
        b.Append("EVAL %s 1 k", kScript.c_str());
      } else {
        b.Append("GET k");
      }
      if (in_multi) b.Append("EXEC");
      ASSERT_TRUE(a.Command("SET k %s", value.c_str()));
      if (in_multi) {
        Next(b);
        Next(b);
        const Reply all = Next(b);
        ASSERT_TRUE(all) << (all.error() ? all.error()->message : "");
        EXPECT_EQ(all->element[0]->str, value);
      } else {
        EXPECT_EQ(Next(b).text(), value);
      }
    }
  }
}

TEST_F(MomentsTest, WhatIsSentLaterShowsWhatItsTakerDependsOn) {
  {
    Scope scope;
    b.Append("GET k");
  }
  b.Append("GET k");
  Scope scope(Written(a, "k", "taken"));
  EXPECT_EQ(Next(b).text(), "taken");
  EXPECT_EQ(Next(b).text(), "taken");
}

TEST_F(MomentsTest, AReplyFromBeforeAWriteIsRefused) {
  for (const std::string read : {"GET k", "EVAL"}) {
    Scope scope;
    for (int times = 0; times < 2; ++times) {
      if (read == "EVAL") {
        b.Append("EVAL %s 1 k", kScript.c_str());
      } else {
        b.Append("GET k");
      }
    }
    EXPECT_TRUE(Next(b));
    ASSERT_TRUE(a.Command("SET k newer"));  // the second reply is on its way
    Reply past = Next(b);
    ExpectPast(past);
    EXPECT_EQ(b.Command("GET k").text(), "newer");
  }
}

TEST_F(MomentsTest, AReplyFromBeforeAMergeIsRefused) {
  for (const bool by_reading : {false, true}) {
    Connection reader = Wrapped("b2", Options(kStore).WaitOnRead(!by_reading).Timeout(10s));
    Scope scope;
    reader.Append("PING");
    reader.Append("GET k");
    EXPECT_TRUE(Next(reader));
    const Lineage written = Written(a, "k", "merged");
    if (by_reading) {
      ReadingOptions options;
      options.after = written;
      Reading reading(options);
      Reply past = Next(reader);
      ExpectPast(past);
    } else {
      scope->Transfer(written);
      Reply past = Next(reader);
      ExpectPast(past);
    }
  }
}

TEST_F(MomentsTest, WhatAnExecGivesIsOfWhenItsMultiBegan) {
  Scope scope;
  ASSERT_TRUE(b.Command("MULTI"));
  ASSERT_TRUE(b.Command("GET k"));
  ASSERT_TRUE(a.Command("SET k later"));
  Reply past = b.Command("EXEC");
  ExpectPast(past);
  EXPECT_EQ(b.Command("GET k").text(), "later");
}

TEST_F(MomentsTest, AReadBehindAnExecThatIsNotSentYetWaitsBehindIt) {
  Scope scope(Written(a, "k", "behind"));
  ASSERT_TRUE(b.Command("MULTI"));
  ASSERT_TRUE(b.Command("GET k"));
  b.Append("EXEC");
  b.Append("GET k");
  const Reply all = Next(b);
  ASSERT_TRUE(all) << (all.error() ? all.error()->message : "");
  ASSERT_EQ(all->elements, 1U);
  EXPECT_STREQ(all->element[0]->str, "behind");
  EXPECT_EQ(Next(b).text(), "behind");
}

TEST_F(MomentsTest, WhatTheSameConnectionWroteBeforeIsThere) {
  Connection own = Wrapped("a", Waits());
  Scope scope;
  for (int turn = 0; turn < 2; ++turn) {
    own.Append("SET own %d", turn);
    own.Append("GET own");
    own.Append("INCR own");
    own.Append("GET own");
    EXPECT_EQ(Next(own).text(), "OK");
    own.Append("GET own");  // sent while the position of the writes is on its way
    EXPECT_EQ(Next(own).text(), std::to_string(turn));
    EXPECT_EQ(Next(own)->integer, turn + 1);
    EXPECT_EQ(Next(own).text(), std::to_string(turn + 1));
    EXPECT_EQ(Next(own).text(), std::to_string(turn + 1));
  }
}

TEST_F(MomentsTest, RepliesThatWereReadAheadOutliveTheConnection) {  // SHIM-47
  Connection brief = Wrapped("b2", Options(kStore).WaitOnRead(true).Timeout(1s));
  ASSERT_EQ(brief.SetTimeout(timeval{30, 0}), REDIS_OK);
  for (const char* each : {"PING", "ECHO 1", "ECHO 2"}) brief.Append(each);
  EXPECT_EQ(Next(brief).text(), "PONG");
  TheLab().Freeze("redis", "b2");
  Scope scope(Written(a, "k", "frozen"));
  brief.Append("GET k");
  EXPECT_EQ(Next(brief).text(), "1");
  EXPECT_EQ(Next(brief).text(), "2");
  Reply late;
  EXPECT_EQ(brief.GetReply(&late), REDIS_ERR);
  ASSERT_NE(late.error(), nullptr);
  EXPECT_EQ(late.error()->code, ErrorCode::kTimedOut) << late.error()->message;
  TheLab().Thaw("redis", "b2");
  ASSERT_EQ(brief.Reconnect(), REDIS_OK);
  EXPECT_TRUE(Until([&] { return brief.Command("GET k").text() == "frozen"; }));
}

TEST_F(MomentsTest, ThePoliciesSayWhatBecomesOfAPastReply) {
  Scope scope;
  b.Append("PING");
  b.Append("GET k");
  EXPECT_TRUE(Next(b));
  ASSERT_TRUE(a.Command("SET k newest"));
  SettingWords words;
  words.on_unproven = Policy::kProceed;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(Next(b).text(), "old");
}

}  // namespace
}  // namespace antipode::redis
