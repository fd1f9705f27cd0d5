// What an application does from end to end: the paper's verbs, services without Antipode between ours, streams and
// batches.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/settings.h"
#include "environment.h"
#include "model/parse.h"
#include "propagation/exchange.h"
#include "trust/seal.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

using Headers = std::multimap<std::string, std::string>;

WriteId At(const std::string& store, std::uint64_t counter) { return *WriteId::Position(store, "e", counter); }

TEST(Verbs, OfThePaperAreAllThere_LIN_30_SCOPE_21) {
  const Isolation isolation;
  const ScopePtr scope = Root();
  Append(At("posts", 1));
  Transfer(*Deserialize("1~users..e.2"));
  EXPECT_EQ(*Serialize(), "1~posts..e.1~users..e.2");
  EXPECT_EQ(Remove(At("posts", 1)).lineage.Serialize(), "1~posts..e.1");
  EXPECT_EQ(RemoveStore("users").lineage.Serialize(), "1~users..e.2");
  EXPECT_EQ(Deserialize("1~a..e.1")->Compare(*Deserialize("1~a..e.2")), Order::kBefore);
  Stop();
  EXPECT_TRUE(scope->closed());
  EXPECT_EQ(CurrentScope(), nullptr);
}

TEST(Services, WithoutAntipodeForwardBaggageAndThatIsEnough_PROP_11) {
  const Isolation isolation;
  Headers first;
  {
    const Scope scope(Read("1~a..e.1"));
    ASSERT_FALSE(InjectRequest(HeaderCarrier(first), "inside"));
  }
  // What a library of baggage makes of it: its own member beside ours, spaces after commas.
  const Headers second{{"baggage", "tenant=7, " + first.find("baggage")->second + ";ttl=3"}};
  const Scope scope = ExtractRequest(HeaderCarrier(second), "127.0.0.1");
  EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.1");
}

TEST(Messages, OfABatchHaveAScopeEach_SCOPE_6) {
  const Isolation isolation;
  for (const char* text : {"1~a..e.1", "1~b..e.1", ""}) {
    const Scope scope = MessageScope(text);
    EXPECT_EQ(scope.lineage().Serialize(), *text == '\0' ? "1" : text);
    Append(At("c", 1));
  }
  EXPECT_EQ(CurrentScope(), nullptr);
}

TEST(Streams, HaveOneScopeAndOneAMessageWhereTheHandlerAsks_SCOPE_8) {
  const Isolation isolation;
  const Scope stream = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", "1~a..e.1"}}), "127.0.0.1");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const Scope message = MessageScope("1~m..e." + std::to_string(i));
    EXPECT_EQ(message.lineage().size(), 1U);
  }
  EXPECT_EQ(CurrentScope(), stream.shared());
  EXPECT_EQ(stream.lineage().Serialize(), "1~a..e.1");
}

TEST(Judgements, ComeBeforeReading_TRUST_1) {
  const Isolation isolation;
  const Scope scope = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", "no lineage at all"}}), "203.0.113.9");
  EXPECT_TRUE(scope.lineage().IsComplete());
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=malformed"}), 0U);
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=untrusted"}), 1U);
}

TEST(Judgements, AreOfEachTextByItsOwnSeal_TRUST_24) {
  const Isolation isolation;
  SettingWords words;
  words.keys = *Keys::Make({{"k", std::string(16, 'k')}});
  ASSERT_TRUE(Configure(words).ok());
  const auto later = static_cast<std::int64_t>(UnixTime()) + 60;
  const std::string sealed = Seal("1~a..e.1", *words.keys, Purpose::kRequest, later);
  const Headers headers{{"baggage", "antipode=" + sealed}, {"antipode-lineage", "1~b..e.1"}};
  const Scope scope = ExtractRequest(HeaderCarrier(headers), "203.0.113.9");
  EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.1~_.i");
}

TEST(Settings, ThatWereReadAreNotLookedForAgain_CONF_12) {
  const Isolation isolation;
  EXPECT_EQ(CurrentSettings()->region, "");
  setenv("ANTIPODE_REGION", "b", 1);
  EXPECT_EQ(CurrentSettings()->region, "");
  ResetSettings();
  EXPECT_EQ(CurrentSettings()->region, "b");
}

TEST(Reading, RefusesByLengthBeforeAnythingElse_WIRE_27) {
  const Result<ParsedText> parsed = Parse("1~" + std::string(50'000'000, '~'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message, "a lineage of 50000002 bytes; at most 4087 are taken [AP405]");
}

TEST(Positions, AreShort_WIRE_39) {
  EXPECT_LT(Lineage(*WriteId::Position("blog-posts", "8371ab90c2d4e6f1", UINT64_MAX)).Serialize().size(), 80U);
}

TEST(Injecting, NeitherChangesNorFailsTheScope_PROP_12) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  const Lineage before = scope.lineage();
  for (const char* host : {"", "inside", "[", "::1", "host:99999", "\xff"}) {
    Headers headers;
    EXPECT_FALSE(InjectRequest(HeaderCarrier(headers), host)) << host;
  }
  EXPECT_TRUE(scope.lineage().IsSame(before));
}

TEST(Writes, RememberTheLineageOfTheirSending_PROP_21) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  const PendingPtr write = scope->Begin("posts");
  Append(At("b", 1));
  EXPECT_EQ(write->lineage().Serialize(), "1~a..e.1");
}

TEST(Deadlines, OfTheRequestAreTheScopes_PROP_25) {
  const Isolation isolation;
  const Scope scope;
  EXPECT_FALSE(scope->deadline().has_value());
  const auto at = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  scope->set_deadline(at);
  EXPECT_EQ(scope->deadline(), at);
}

}  // namespace
}  // namespace antipode::testing
