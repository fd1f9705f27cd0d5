// Messages, requests and responses in recorded histories, and lineages that come by other ways (HIST-30, HIST-33).
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "antipode/carry.h"
#include "antipode/keys.h"
#include "antipode/memory.h"
#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/reading.h"
#include "antipode/response_stream.h"
#include "antipode/scope.h"
#include "history_test.h"

namespace antipode::testing {
namespace {

using namespace std::chrono_literals;
using Json = History::Json;
using Headers = std::map<std::string, std::string>;

constexpr const char* kPeer = "10.0.0.1";
constexpr const char* kHost = "post-storage";

class HistoryMessagesTest : public ::testing::Test {
 protected:
  HistoryMessagesTest() : store_("posts", {"a", "b"}), client_(store_.Client("a")) {}

  void Write(const std::string& key) { EXPECT_TRUE(client_.Set(key, "x").ok()); }
  static std::string Left() { return OutgoingMessage().value().value_or(""); }
  History::Decided Decided() const { return history_.Decide(ANTIPODE_COMMAND); }
  std::vector<Json> Lines(const std::string& kind) const {
    return history_.Lines(kind, {"message", "lineage", "scope"});
  }

  const Isolated isolated_;
  const History history_;
  MemoryStore store_;
  MemoryClient client_;
};

// The extension goes with the text that it names, comes out of the other side's lineage, and is another for each text.
TEST_F(HistoryMessagesTest, RequestAndResponse) {
  std::vector<std::string> texts;
  {
    const Scope caller;
    Write("1");
    Headers request;
    EXPECT_FALSE(InjectRequest(HeaderCarrier(request), kHost));
    Headers response;
    {
      Scope callee = ExtractRequest(HeaderCarrier(request), kPeer);
      EXPECT_TRUE(callee.lineage().extensions().empty());
      EXPECT_EQ(callee.lineage(), caller.lineage());
      Write("2");
      callee.InjectResponse(HeaderCarrier(response));
    }
    ExtractResponse(HeaderCarrier(response), kHost);
    EXPECT_TRUE(caller.lineage().extensions().empty());
    texts = {request["baggage"], response["antipode-lineage"]};
  }
  const std::vector<Json> sent = Lines("send");
  const std::vector<Json> came = Lines("receive");
  ASSERT_EQ(sent.size(), 2U);
  ASSERT_EQ(came.size(), 2U);
  for (std::size_t each = 0; each < 2; ++each) {
    EXPECT_EQ(sent[each].at("message"), came[each].at("message"));
    EXPECT_FALSE(came[each].contains("lineage"));
    EXPECT_NE(texts[each].find("~_.msg." + sent[each].at("message").get<std::string>()), std::string::npos)
        << texts[each];
  }
  EXPECT_NE(sent[0].at("message"), sent[1].at("message"));
  EXPECT_EQ(sent[0].at("scope"), came[1].at("scope"));
  EXPECT_EQ(Decided().exit_code, 0);
}

// Of a response, which says only what is new to its caller, the whole lineage of its scope; also where nothing is new.
TEST_F(HistoryMessagesTest, AResponseThatAddsNothing) {
  const Scope caller;
  Write("1");
  Headers request;
  EXPECT_FALSE(InjectRequest(HeaderCarrier(request), kHost));
  Headers response;
  {
    Scope callee = ExtractRequest(HeaderCarrier(request), kPeer);
    callee.InjectResponse(HeaderCarrier(response));
  }
  const Lineage before = caller.lineage();
  ExtractResponse(HeaderCarrier(response), kHost);
  EXPECT_TRUE(before.IsSame(caller.lineage()) || before == caller.lineage());
  const std::vector<Json> sent = Lines("send");
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(response["antipode-lineage"], "1~_.msg." + sent[1].at("message").get<std::string>());
  EXPECT_EQ(sent[1].at("lineage"), sent[0].at("lineage"));
  ASSERT_EQ(Lines("receive").size(), 2U);
}

TEST_F(HistoryMessagesTest, ARequestThatBroughtNothingAndDidNothingAnswersNothing) {
  Headers response;
  {
    Scope callee = ExtractRequest(HeaderCarrier(Headers{}), kPeer);
    callee.InjectResponse(HeaderCarrier(response));
  }
  EXPECT_TRUE(response.empty());
  EXPECT_TRUE(Lines("send").empty());
}

// The lineage of a stream of messages comes in its trailer.
TEST_F(HistoryMessagesTest, AResponseStream) {
  const Scope caller;
  Headers request;
  EXPECT_FALSE(InjectRequest(HeaderCarrier(request), kHost));
  ResponseStream stream(kHost);
  Headers trailer;
  {
    Scope callee = ExtractRequest(HeaderCarrier(request), kPeer);
    Write("1");
    callee.InjectResponse(HeaderCarrier(trailer));
  }
  stream.Message();
  stream.End(HeaderCarrier(trailer));
  ASSERT_EQ(Lines("receive").size(), 1U);
  EXPECT_EQ(Lines("receive")[0].at("scope").get<std::string>().rfind("root ", 0), 0U);
}

TEST_F(HistoryMessagesTest, WhoRecordsNothingTakesTheMessagesNameOut) {
  std::string text;
  {
    const Scope scope;
    Write("1");
    text = Left();
  }
  History::Record("");
  const Scope scope = MessageScope(text);
  EXPECT_TRUE(scope.lineage().extensions().empty());
  EXPECT_EQ(Left(), scope.lineage().Serialize());
}

TEST_F(HistoryMessagesTest, OfSomebodyWhoRecordsNothingAnUnknownMessage) {
  { const Scope scope = MessageScope("1~posts..e.5"); }
  const std::vector<Json> came = Lines("receive");
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].at("lineage"), "1~posts..e.5");
  EXPECT_EQ(came[0].at("message").get<std::string>().rfind("stranger-", 0), 0U);
  EXPECT_EQ(Decided().exit_code, 2);
}

TEST_F(HistoryMessagesTest, AMessageOfSeveralNamesIsReceivedOfEach) {
  { const Scope scope = MessageScope("1~_.msg.a1~_.msg.b2"); }
  const std::vector<Json> came = Lines("receive");
  ASSERT_EQ(came.size(), 2U);
  EXPECT_EQ(came[0].at("message"), "a1");
  EXPECT_EQ(came[1].at("message"), "b2");
}

// Values never have it, and what is read out of one is no message.
TEST_F(HistoryMessagesTest, AValueHasNoMessagesName) {
  {
    const Scope scope;
    Write("1");
    Write("2");
  }
  {
    const Scope scope;
    const Reading reading;
    EXPECT_EQ(client_.Get("2").value, "x");
    EXPECT_TRUE(reading.lineage().extensions().empty());
    EXPECT_FALSE(reading.lineage().empty());
  }
  EXPECT_TRUE(Lines("send").empty());
  EXPECT_TRUE(Lines("receive").empty());
}

TEST_F(HistoryMessagesTest, TheNameIsWithinTheBudget) {
  SettingWords words;
  words.budget_bytes = 120;
  ASSERT_TRUE(Configure(words).ok());
  MemoryStore objects(MemoryOptions{"objects", {"a"}, {}, {}, Versions::kObject, false, 0, nullptr});
  MemoryClient client = objects.Client("a");
  std::string text;
  {
    const Scope scope;
    for (int number = 0; number < 10; ++number) EXPECT_TRUE(client.Set(std::to_string(number), "x").ok());
    text = Left();
  }
  EXPECT_LE(text.size(), 120U);
  const std::vector<Json> sent = Lines("send");
  ASSERT_EQ(sent.size(), 1U);
  const Scope scope = MessageScope(text);
  EXPECT_EQ(scope.lineage().incomplete(), std::vector<std::string>{"objects"});
  EXPECT_EQ(sent[0].at("lineage"), scope.lineage().Serialize());
}

// A sealed text is sealed with its name in it.
TEST_F(HistoryMessagesTest, Sealed) {
  SettingWords words;
  words.keys = Keys::Make({{"k1", "0123456789abcdef"}}).value();
  ASSERT_TRUE(Configure(words).ok());
  std::string text;
  {
    const Scope scope;
    Write("1");
    text = Left();
  }
  const Scope scope = MessageScope(text);
  EXPECT_TRUE(scope.lineage().IsComplete());
  EXPECT_FALSE(scope.lineage().empty());
  EXPECT_EQ(Lines("receive").size(), 1U);
}

// A scope that is carried is the same one.
TEST_F(HistoryMessagesTest, CarriedWorkStandsInItsScope) {
  {
    const Scope scope;
    Carry([&] { Write("1"); })();
    Write("2");
  }
  for (const Json& line : history_.Lines("write", {"scope"})) EXPECT_EQ(line.at("scope"), "root 1");
}

// HIST-33: a position stands for writes that no line names, and what comes after them is not judged by them.
class ByAnotherWay : public HistoryMessagesTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ByAnotherWay, IsAReceiptOfAnUnknownMessage) {
  {
    const Scope scope;
    Write("1");
  }
  Lineage lineage;
  {
    const Scope scope;
    Write("2");  // its position covers the write before
    lineage = scope.lineage();
  }
  EXPECT_EQ(Decided().exit_code, 0);
  const std::string way = GetParam();
  if (way == "scope") {
    const Scope scope(lineage);
  } else if (way == "hand") {
    const Scope scope;
    Transfer(lineage);
  } else {
    const Scope scope;
    scope->Transfer(lineage);
  }
  const std::vector<Json> came = Lines("receive");
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].at("lineage"), lineage.Serialize());
  EXPECT_EQ(Decided().exit_code, 2);
}

INSTANTIATE_TEST_SUITE_P(Ways, ByAnotherWay, ::testing::Values("scope", "hand", "method"),
                         [](const auto& each) { return std::string(each.param); });

// What a value depends on comes by the read.
TEST_F(HistoryMessagesTest, WhatAReadTransfersIsNoMessage) {
  {
    const Scope scope;
    Write("1");
  }
  {
    const Scope scope;
    ReadingOptions options;
    options.merge = true;
    const Reading reading(options);
    EXPECT_EQ(client_.Get("1").value, "x");
  }
  EXPECT_TRUE(Lines("receive").empty());
  EXPECT_EQ(Decided().exit_code, 0);
}

}  // namespace
}  // namespace antipode::testing
