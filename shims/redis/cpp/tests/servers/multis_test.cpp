// A MULTI that is lost, refused or nested, and what was appended behind it (SHIM-6, SHIM-11, SCOPE-17).
#include <string>

#include "region.h"

namespace antipode::redis {
namespace {

using MultisTest = PostsTest;

TEST_F(MultisTest, AMultiThatIsLostWithItsConnectionDidNotHappen) {
  Connection posts = Wrapped("a");
  Scope scope;
  posts.Command("MULTI");
  posts.Command("SET k 1");
  EXPECT_EQ(scope->pending().size(), 1U);
  ASSERT_EQ(posts.Reconnect(), REDIS_OK);
  EXPECT_TRUE(scope->pending().empty());
  ASSERT_EQ(posts.Command("SET k 2").text(), "OK");
  PositionOf(scope->lineage());
}

// Takes the right to MULTI from a connection: what is sent with it is executed by itself.
void Refuse(Connection& posts) {
  Plain("a").Do({"DEL", "k"});
  Plain("a").Do({"ACL", "SETUSER", "poor", "reset", "on", ">secret", "~*", "&*", "+@all", "-multi"});
  ASSERT_EQ(posts.Command("AUTH poor secret").text(), "OK");
}

TEST_F(MultisTest, WhatARefusedMultiDidNotQueueIsIncompleteAlsoWhereItsReplyIsNotRead) {  // SHIM-6
  Connection posts = Wrapped("a");
  Refuse(posts);
  Scope scope;
  posts.Append("MULTI");
  posts.Append("SET k alone");
  Reply r;
  ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
  EXPECT_EQ(r.text().substr(0, 6), "NOPERM");
  EXPECT_TRUE(Until([] { return Plain("a").Get("k") == "alone"; }));
  ASSERT_EQ(posts.Reconnect(), REDIS_OK);
  EXPECT_FALSE(scope->Outgoing()->IsComplete());
}

TEST_F(MultisTest, WhatIsLostBehindAMultiThatWasNotAnsweredIsUnknown) {  // SCOPE-17
  for (const char* end : {"PING", "DISCARD", "EXEC"}) {
    Connection posts = Wrapped("a");
    Refuse(posts);
    Scope scope;
    for (const char* each : {"PING", "MULTI", "SET k alone", end}) posts.Append(each);
    Reply r;
    ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
    EXPECT_EQ(r.text(), "PONG");
    EXPECT_TRUE(Until([] { return Plain("a").Get("k") == "alone"; }));
    ASSERT_EQ(posts.Reconnect(), REDIS_OK);
    EXPECT_EQ(scope->pending().size(), 1U) << end;
    EXPECT_FALSE(scope->Outgoing()->IsComplete()) << end;
  }
}

TEST_F(MultisTest, AScriptThatFailedBehindARefusedMultiMayHaveWritten) {  // SHIM-6
  const std::string script = "redis.call('SET', 'k', 'alone') return redis.error_reply('OOPS half done')";
  for (const char* end : {"DISCARD", "EXEC", ""}) {
    Connection posts = Wrapped("a");
    Refuse(posts);
    Scope scope;
    posts.Append("MULTI");
    posts.Append("EVAL %s 0", script.c_str());
    if (*end != '\0') posts.Append(end);
    for (int replies = *end == '\0' ? 2 : 3; replies > 0; --replies) {
      Reply r;
      ASSERT_EQ(posts.GetReply(&r), REDIS_OK);
      EXPECT_TRUE(r.IsError()) << end;
    }
    EXPECT_EQ(Plain("a").Get("k"), "alone");
    EXPECT_TRUE(scope->pending().empty()) << end;
    EXPECT_TRUE(!scope->lineage().IsComplete() || scope->lineage().size() == 1) << end;  // EXEC's question covers it
  }
}

TEST_F(MultisTest, TheTransactionBehindARefusedMultiIsOneOfItsOwn) {  // SHIM-11
  Connection posts = Wrapped("a");
  Refuse(posts);
  {
    Scope scope;
    posts.Append("MULTI");
    posts.Append("SET k alone");
    ASSERT_EQ(posts.GetReply(nullptr), REDIS_OK);
    ASSERT_EQ(posts.GetReply(nullptr), REDIS_OK);
    EXPECT_FALSE(scope->Outgoing()->IsComplete());
  }
  Plain("a").Do({"ACL", "SETUSER", "poor", "+multi"});
  Scope scope;
  ASSERT_EQ(posts.Command("MULTI").text(), "OK");
  ASSERT_EQ(posts.Command("SET k 1").text(), "QUEUED");
  EXPECT_EQ(scope->pending().size(), 1U);
  ASSERT_EQ(posts.Command("EXEC")->type, REDIS_REPLY_ARRAY);
  PositionOf(scope->lineage());
  EXPECT_TRUE(scope->Outgoing()->IsComplete());
}

TEST_F(MultisTest, ANestedMultiIsRefusedAndLeavesTheTransactionAsItIs) {  // SHIM-11
  Connection posts = Wrapped("a");
  Scope scope;
  posts.Command("MULTI");
  posts.Command("SET k 1");
  EXPECT_TRUE(posts.Command("MULTI").IsError());
  EXPECT_EQ(scope->pending().size(), 1U);
  EXPECT_EQ(posts.Command("EXEC")->elements, 1U);
  PositionOf(scope->lineage());
}

}  // namespace
}  // namespace antipode::redis
