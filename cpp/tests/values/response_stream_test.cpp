// The caller of a response stream has messages in hand before the trailer brings their lineage (PROP-28, PROP-27).
#include "antipode/response_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/carry.h"
#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/reading.h"
#include "antipode/settings.h"
#include "environment.h"
#include "scope/scope_impl.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

using Headers = std::multimap<std::string, std::string>;

constexpr std::string_view kHost = "post-storage:50051";
const Headers kTrailer{{"antipode-lineage", "1~posts..e.7"}};

std::vector<std::string> Reasons(const LineageScope& scope) {
  std::vector<std::string> reasons;
  for (const Gap& gap : scope.gaps()) reasons.push_back(gap.reason);
  return reasons;
}

// A message is in hand: nothing that judges this scope or leaves it takes it for complete.
void ExpectOpen(const Scope& scope) {
  EXPECT_EQ(scope.lineage().Serialize(), "1~_.i");
  EXPECT_EQ(*Serialize(), "1~_.i");
  EXPECT_EQ(scope->lineage().Serialize(), "1~_.i");
  EXPECT_EQ(Reasons(*scope), std::vector<std::string>{"streaming"});
}

void ExpectEnded(const Scope& scope) {
  EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.7");
  EXPECT_EQ(*Serialize(), "1~posts..e.7");
  EXPECT_TRUE(scope->gaps().empty());
  EXPECT_FALSE(scope->impl().streaming());
}

void ExpectLost(const Scope& scope, const std::string& words) {
  EXPECT_EQ(scope.lineage().Serialize(), "1~_.i");
  ASSERT_EQ(Reasons(*scope), std::vector<std::string>{"unanswered"});
  EXPECT_EQ(scope->gaps().front().detail, "a call to " + std::string(kHost) + " brought no answer: " + words);
  EXPECT_FALSE(scope->impl().streaming());
}

TEST(ResponseStreams, MakeTheScopeIncompleteUntilTheTrailer_PROP_28) {
  const Isolation isolation;
  const Scope scope;
  ResponseStream stream(kHost);
  EXPECT_TRUE(scope.lineage().empty());  // nothing is in hand yet
  stream.Message();
  ExpectOpen(scope);
  EXPECT_EQ(scope->gaps().front().detail,
            "a response stream of post-storage:50051 is open: its lineage comes at its end");
  stream.Message();
  ExpectOpen(scope);
  stream.End(HeaderCarrier(kTrailer));
  ExpectEnded(scope);
  stream.Message();  // what the end brought covers it
  stream.Lost("cancelled");
  ExpectEnded(scope);
}

TEST(ResponseStreams, ThatBringNothingWroteNothing_PROP_13_PROP_28) {
  const Isolation isolation;
  const Scope scope;
  ResponseStream stream(kHost);
  stream.Message();
  stream.End(HeaderCarrier(Headers()));
  EXPECT_TRUE(scope.lineage().empty());
}

TEST(ResponseStreams, MarkEveryCopyThatLeavesOrRests_PROP_28) {
  const Isolation isolation;
  Scope scope = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", "1~acl..e.3"}}), "10.0.0.7:4711");
  ResponseStream stream(kHost);
  stream.Message();
  Headers request;
  ASSERT_FALSE(InjectRequest(HeaderCarrier(request), "inside"));
  EXPECT_EQ(request, (Headers{{"baggage", "antipode=1~acl..e.3~_.i"}}));
  EXPECT_EQ(Isolation::Counted("antipode.lineage.incomplete", {"reason=streaming", "store="}), 1U);
  EXPECT_EQ(**OutgoingMessage(), "1~acl..e.3~_.i");
  EXPECT_EQ(**TextForRequest("inside"), "1~acl..e.3~_.i");
  const PendingPtr write = scope->Begin("posts");
  EXPECT_EQ(scope->MarkedBut(write).Serialize(), "1~acl..e.3~_.i");  // what rests beside this write's own value
  EXPECT_EQ(scope->lineage().Serialize(), "1~acl..e.3~_.i");          // anywhere says more than a store
  scope->End(write);
  {
    const Scope detached = DetachedScope();
    EXPECT_EQ(detached.lineage().Serialize(), "1~acl..e.3~_.i");
  }
  Headers response;
  scope.InjectResponse(HeaderCarrier(response));
  EXPECT_EQ(response, (Headers{{"antipode-lineage", "1~_.i"}}));  // the caller's own caller hears of it
  stream.End(HeaderCarrier(kTrailer));
  EXPECT_EQ(scope.lineage().Serialize(), "1~acl..e.3~posts..e.7");
  Headers later;
  ASSERT_FALSE(InjectRequest(HeaderCarrier(later), "inside"));
  EXPECT_EQ(later, (Headers{{"baggage", "antipode=1~acl..e.3~posts..e.7"}}));
}

TEST(ResponseStreams, OfWhichOneIsStillOpenKeepTheMark_PROP_28) {
  const Isolation isolation;
  const Scope scope;
  ResponseStream first(kHost);
  ResponseStream second(kHost);
  first.Message();
  second.Message();
  EXPECT_EQ(Reasons(*scope), (std::vector<std::string>{"streaming", "streaming"}));
  first.End(HeaderCarrier(Headers()));
  ExpectOpen(scope);
  second.End(HeaderCarrier(kTrailer));
  ExpectEnded(scope);
}

TEST(ResponseStreams, ThatEndWithoutTheServersWordLeaveTheMark_PROP_27_PROP_28) {
  const Isolation isolation;
  const Scope scope;
  ResponseStream stream(kHost);
  stream.Message();
  stream.Lost("deadline exceeded");
  ExpectLost(scope, "deadline exceeded");
  stream.End(HeaderCarrier(kTrailer));  // it has ended
  ExpectLost(scope, "deadline exceeded");
}

TEST(ResponseStreams, ThatAreGivenUpLeaveTheMark_PROP_27_PROP_28) {
  const Isolation isolation;
  for (const bool with_message : {true, false}) {  // without one the call may have written all the same
    const Scope scope;
    {
      ResponseStream stream(kHost);
      if (with_message) stream.Message();
    }
    ExpectLost(scope, "nobody read it to its end");
  }
}

TEST(ResponseStreams, ThatNeverLeftMissNothing_PROP_27) {
  const Isolation isolation;
  const Scope scope;
  {
    ResponseStream stream(kHost);
    stream.NotSent();
  }
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_TRUE(scope->gaps().empty());
}

TEST(ResponseStreams, AreVouchedForUntilTheNextMessage_PROP_28_LIN_23_LIN_26) {
  const Isolation isolation;
  const Scope scope;
  ResponseStream stream(kHost);
  stream.Message();
  scope->Vouch();
  EXPECT_TRUE(scope.lineage().empty());
  EXPECT_TRUE(scope->gaps().empty());
  stream.Message();
  ExpectOpen(scope);
  scope->Vouch();
  stream.Lost("cancelled");  // a later loss is a new one
  ExpectLost(scope, "cancelled");
}

TEST(ResponseStreams, OfStrangersAreNone_PROP_28_TRUST_3) {
  const Isolation isolation;
  const Scope scope;
  {
    ResponseStream stream("203.0.113.9:80");
    stream.Message();
    EXPECT_TRUE(scope.lineage().empty());
    stream.End(HeaderCarrier(kTrailer));
    EXPECT_TRUE(scope.lineage().empty());  // nor is what they send believed
    const ResponseStream given_up("203.0.113.9:80");
  }
  EXPECT_TRUE(scope.lineage().empty());
}

TEST(ResponseStreams, HideNoLossBySettingsThatChange_PROP_27_PROP_28) {
  for (const bool taken : {false, true}) {
    const Isolation isolation;
    const Scope scope;
    {
      ResponseStream stream(kHost);
      stream.Message();
      SettingWords words;
      words.mode = Mode::kOff;
      ASSERT_TRUE(Configure(words).ok());
      if (taken) stream.End(HeaderCarrier(kTrailer));
    }
    ExpectLost(scope, taken ? "its trailer is not taken, by settings that came while it was open"
                            : "nobody read it to its end");
    SettingWords on;
    on.mode = Mode::kEnforce;
    ASSERT_TRUE(Configure(on).ok());
    EXPECT_EQ(Reasons(*scope), (std::vector<std::string>{"unanswered", "mode"}));
  }
}

TEST(ResponseStreams, WithModeOffAreNone_PROP_26_PROP_28) {
  const Isolation isolation(Variables{{"ANTIPODE_MODE", "off"}});
  const Scope scope;
  {
    ResponseStream stream(kHost);
    stream.Message();
  }
  EXPECT_TRUE(scope.lineage().empty());
}

TEST(ResponseStreams, OutsideAnyScopeAreCounted_PROP_28_SCOPE_9) {
  const Isolation isolation;
  ResponseStream stream(kHost);
  stream.Message();
  const Scope other;  // opened later: not the call's
  stream.End(HeaderCarrier(kTrailer));
  EXPECT_TRUE(other.lineage().empty());
  EXPECT_EQ(Isolation::Counted("antipode.write.lost", {"reason=orphan", "store=other"}), 1U);
}

TEST(ResponseStreams, BelongToTheScopeWhereTheyWereMade_PROP_28) {
  const Isolation isolation;
  const Scope scope;
  ResponseStream stream(kHost);
  std::thread([&] {
    const Scope another;
    stream.Message();
    EXPECT_TRUE(another.lineage().empty());
  }).join();
  ExpectOpen(scope);
  std::thread([&] {  // a thread of the transport's, which has no scope
    stream.End(HeaderCarrier(kTrailer));
  }).join();
  ExpectEnded(scope);
}

TEST(ResponseStreams, MayBeMoved_PROP_28) {
  const Isolation isolation;
  const Scope scope;
  std::optional<ResponseStream> held;
  {
    ResponseStream stream(kHost);
    stream.Message();
    held.emplace(std::move(stream));
  }
  ExpectOpen(scope);
  ResponseStream next("post-storage:50052");
  next.Message();
  next = *std::move(held);  // what it stood for is given up
  EXPECT_EQ(Reasons(*scope), (std::vector<std::string>{"unanswered", "streaming"}));
  next.End(HeaderCarrier(kTrailer));
  EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.7~_.i");
}

// Whoever sees the scope complete sees what the trailer brought: first the join, then the mark goes.
TEST(ResponseStreams, NeverLookCompleteWithoutTheirLineage_PROP_28) {
  const Isolation isolation;
  for (int round = 0; round < 300; ++round) {
    const Scope scope;
    ResponseStream stream(kHost);
    stream.Message();
    std::atomic<bool> begun{false};
    std::thread reader([&] {
      Lineage seen;
      do {
        seen = scope.lineage();
        begun = true;
      } while (!seen.IsComplete());
      EXPECT_EQ(seen.Serialize(), "1~posts..e.7");
    });
    std::thread talker([&] { stream.Message(); });
    while (!begun) std::this_thread::yield();
    stream.End(HeaderCarrier(kTrailer));
    ExpectEnded(scope);
    talker.join();
    reader.join();
    ExpectEnded(scope);
  }
}

TEST(ResponseStreams, EndOnceHoweverManyThreadsSaySo_PROP_28) {
  const Isolation isolation;
  for (int round = 0; round < 100; ++round) {
    const Scope scope;
    ResponseStream stream(kHost);
    stream.Message();
    std::thread ends([&] { stream.End(HeaderCarrier(kTrailer)); });
    std::thread loses([&] {
      stream.Lost("cancelled");
      EXPECT_FALSE(scope->impl().streaming());  // the second one has waited for the first
    });
    ends.join();
    loses.join();
    if (scope.lineage().IsComplete()) {
      ExpectEnded(scope);
    } else {
      ExpectLost(scope, "cancelled");
    }
  }
}

// What gRPC's status and context look like, without gRPC.
enum class StatusCode { kOk = 0, kCancelled = 1, kNotFound = 5, kUnavailable = 14 };
struct Status {
  StatusCode code;
  StatusCode error_code() const { return code; }
};
struct ClientContext {
  Headers trailing;
  const Headers& GetServerTrailingMetadata() const { return trailing; }
};

TEST(ResponseStreams, OfGrpcAreAnsweredByTheirTrailers_PROP_15_PROP_27_PROP_28) {
  const Isolation isolation;
  const auto end = [](StatusCode code, const Headers& trailing) {
    ResponseStream stream(kHost);
    stream.Message();
    stream.Finish(Status{code}, ClientContext{trailing});
  };
  for (const StatusCode code : {StatusCode::kOk, StatusCode::kNotFound, StatusCode::kUnavailable}) {
    const Scope scope;
    end(code, kTrailer);
    ExpectEnded(scope);
  }
  for (const StatusCode code : {StatusCode::kOk, StatusCode::kNotFound}) {  // only the server says that
    const Scope scope;
    end(code, {});
    EXPECT_TRUE(scope.lineage().empty());
  }
  const Scope scope;
  end(StatusCode::kCancelled, {});
  ExpectLost(scope, "CANCELLED");
}

}  // namespace
}  // namespace antipode::testing
