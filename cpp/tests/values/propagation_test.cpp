// The four functions, carriers, messages and values, and what trust says of each (PROP, TRUST).
#include "antipode/propagation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "antipode/messages.h"
#include "antipode/settings.h"
#include "environment.h"
#include "model/quote.h"
#include "trust/seal.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

using Headers = std::multimap<std::string, std::string>;
using Map = std::map<std::string, std::string>;

WriteId At(const std::string& store, std::uint64_t counter) { return *WriteId::Position(store, "e", counter); }

TEST(Requests, CarryTheLineageOutAndBringItBack_PROP_1_PROP_13_PROP_14) {
  const Isolation isolation;
  Map request;
  Headers response;
  const Scope caller(Read("1~acl..e.3"));
  ASSERT_FALSE(InjectRequest(ThriftCarrier(request), "post-storage:9090"));
  EXPECT_EQ(request.at("baggage"), "antipode=1~acl..e.3");
  {
    Scope callee = ExtractRequest(ThriftCarrier(request), "10.0.0.7:4711");
    EXPECT_EQ(callee->kind(), ScopeKind::kRequest);
    EXPECT_EQ(callee.lineage(), Read("1~acl..e.3"));
    Append(At("posts", 7));
    callee.InjectResponse(HeaderCarrier(response));
  }
  ASSERT_EQ(response.count("antipode-lineage"), 1U);
  EXPECT_EQ(response.find("antipode-lineage")->second, "1~posts..e.7");
  ExtractResponse(HeaderCarrier(response), "post-storage:9090");
  EXPECT_EQ(caller.lineage().Serialize(), "1~acl..e.3~posts..e.7");
}

TEST(Requests, ThatAddNothingAnswerNothing_PROP_13_PROP_22) {
  const Isolation isolation;
  Headers response;
  Scope scope = ExtractRequest(HeaderCarrier(Headers{{"baggage", "antipode=1~a..e.1"}}), "127.0.0.1");
  scope.InjectResponse(HeaderCarrier(response));
  EXPECT_TRUE(response.empty());
  Append(At("a", 2));
  scope.InjectResponse(HeaderCarrier(response), true);  // a shared cache may keep it
  EXPECT_EQ(response, (Headers{{"antipode-lineage", "1~_.i"}}));
}

TEST(Requests, ThatACacheMayAnswerLeaveTheirCallersIncomplete_PROP_16_PROP_34_PROP_39) {
  const Isolation isolation;
  for (const auto& [method, came] : {std::pair("GET", "1~_.i"), std::pair("POST", "1~a..e.2")}) {
    const Scope caller;
    Headers response = {{"Cache-Control", "max-age=60"}};
    {
      Scope callee = ExtractRequest(HeaderCarrier(Headers()), "127.0.0.1");
      Append(At("a", 2));
      InjectResponse(HeaderCarrier(response), method, 200);
    }
    ExtractResponse(HeaderCarrier(response), "posts");
    EXPECT_EQ(caller.lineage().Serialize(), came) << method;
  }
}

TEST(Requests, ThatAddNothingSayThatNoGatewayHasAnswered_PROP_13_PROP_31) {
  const Isolation isolation;
  for (const int status : {502, 503, 504, 520, 527, 530, 304}) {
    Headers response;
    {
      Scope callee = ExtractRequest(HeaderCarrier(Headers()), "127.0.0.1");
      callee.InjectResponse(HeaderCarrier(response), "GET", status);
    }
    EXPECT_EQ(response, (Headers{{"antipode-lineage", "1"}})) << status;
    const Scope caller;
    ExtractResponse(HeaderCarrier(response), "posts", status);
    EXPECT_TRUE(caller.lineage().IsComplete()) << status;
    if (status == 304) continue;
    ExtractResponse(HeaderCarrier(Headers()), "posts", status);
    EXPECT_EQ(caller.lineage().Serialize(), "1~_.i") << status;
  }
  Headers response;
  const Scope caller;
  Scope callee = ExtractRequest(HeaderCarrier(Headers()), "203.0.113.9");
  callee.InjectResponse(HeaderCarrier(response), "GET", 503);  // a stranger is told nothing
  callee.InjectResponse(HeaderCarrier(response), "GET", 500);
  EXPECT_TRUE(response.empty());
  ExtractResponse(HeaderCarrier(Headers()), "posts", 500);
  EXPECT_TRUE(callee.lineage().IsComplete());
}

TEST(Requests, KeepWhatTheirHeaderSaysAlready_PROP_13) {
  const Isolation isolation;
  for (const int status : {304, 503}) {
    const Headers relayed = {{"Antipode-Lineage", "1~b..e.3"}, {"Cache-Control", "private"}};
    Headers response = {{"Cache-Control", "private"}};
    {
      Scope callee = ExtractRequest(HeaderCarrier(Headers()), "127.0.0.1");
      Append(At("a", 2));
      callee.InjectResponse(HeaderCarrier(response), "GET", status);
      callee.InjectResponse(HeaderCarrier(response), "GET", status);
      EXPECT_EQ(response, (Headers{{"Cache-Control", "private"}, {"antipode-lineage", "1~a..e.2"}})) << status;
      Headers copied = relayed;
      callee.InjectResponse(HeaderCarrier(copied), "GET", status);
      EXPECT_EQ(copied, relayed) << status;
      Append(At("b", 3));
      callee.InjectResponse(HeaderCarrier(response), "GET", status);
    }
    const Scope caller;
    ExtractResponse(HeaderCarrier(response), "posts", status);
    EXPECT_EQ(caller.lineage().Serialize(), "1~a..e.2~b..e.3") << status;
  }
}

TEST(Requests, TakeOutWhatWasWrittenBeforeTheResponseBecamePublic_PROP_16) {
  const Isolation isolation;
  Headers response;
  Scope scope = ExtractRequest(HeaderCarrier(Headers()), "127.0.0.1");
  Append(At("a", 2));
  scope.InjectResponse(HeaderCarrier(response));
  ASSERT_EQ(response.size(), 1U);
  response.emplace("Cache-Control", "public");
  scope.InjectResponse(HeaderCarrier(response));
  EXPECT_EQ(response, (Headers{{"Cache-Control", "public"}, {"antipode-lineage", "1~_.i"}}));
}

TEST(Requests, AreReadAndJudgedWithinBounds_TRUST_32_WIRE_40_WIRE_42) {
  const Isolation isolation;
  std::string hops = "10.0.0.1";
  for (int i = 1; i < 64; ++i) hops += ",10.0.0.1";
  std::string texts;
  for (int i = 0; i < 8000; ++i) texts += "1~a..e." + std::to_string(i) + ",";
  const Scope scope =
      ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", texts}, {"x-forwarded-for", hops}}), "127.0.0.1");
  EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.15~_.i");  // sixteen texts, and more came
  const Scope beyond = ExtractRequest(
      HeaderCarrier(Headers{{"antipode-lineage", "1~a..e.1"}, {"x-forwarded-for", hops + ",10.0.0.1"}}), "127.0.0.1");
  EXPECT_EQ(beyond.lineage().Serialize(), "1");
}

TEST(Requests, OfNobodyWhoIsBelievedMakeNothingIncompleteBySendingMuch_TRUST_28_WIRE_40) {
  const Isolation isolation;
  std::string texts;
  for (int i = 0; i < 100; ++i) texts += "1~a..e." + std::to_string(i) + ",";
  const Scope scope = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", texts}}), "203.0.113.9");
  EXPECT_EQ(scope.lineage().Serialize(), "1");
}

TEST(Requests, WithoutAPeerArePublicUnlessTheOperatorSaysOtherwise_TRUST_9) {
  const Isolation isolation;
  const Headers headers{{"antipode-lineage", "1~a..e.1"}};
  EXPECT_EQ(ExtractRequest(HeaderCarrier(headers), "").lineage().Serialize(), "1");
  SettingWords words;
  words.trust_unix = true;
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(ExtractRequest(HeaderCarrier(headers), "").lineage().Serialize(), "1~a..e.1");
}

TEST(Requests, OverTheBudgetKeepWhatWasWrittenLast_WIRE_33) {
  const Isolation isolation;
  SettingWords words;
  words.budget_bytes = 33;
  ASSERT_TRUE(Configure(words).ok());
  Scope scope = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", "1~came..e.1~too..e.1"}}), "127.0.0.1");
  for (const char* store : {"first", "second", "third", "second"}) Append(At(store, 2));
  const auto sent = [] {
    Headers request;
    EXPECT_FALSE(InjectRequest(HeaderCarrier(request), "localhost"));
    return request.begin()->second.substr(std::string("antipode=").size());
  };
  EXPECT_EQ(sent(), "1~second..e.2~third..e.2~_.i");
  Transfer(Read("1~first..e.3"));  // what came by hand changed here, too
  EXPECT_EQ(sent(), "1~first..e.3~second..e.2~_.i");
  const Scope copy = DetachedScope();
  EXPECT_EQ(sent(), "1~first..e.3~second..e.2~_.i");
}

TEST(Seals, ThatHaveExpiredAreGenuineAllTheSame_TRUST_37) {
  const Isolation isolation;
  SettingWords words;
  words.keys = *Keys::Make({{"k", std::string(16, 'k')}});
  words.trust = Trust::kKey;
  ASSERT_TRUE(Configure(words).ok());
  const auto sealed = [&](Purpose purpose) {
    return Headers{{"antipode-lineage", Seal("1~a..e.1", *words.keys, purpose, 1000)}};
  };
  EXPECT_EQ(ExtractRequest(HeaderCarrier(sealed(Purpose::kRequest)), "203.0.113.9").lineage().Serialize(), "1~a..e.1");
  // A message's text is no request's (TRUST-36): dropped, and under `key` that is a loss (TRUST-28).
  EXPECT_EQ(ExtractRequest(HeaderCarrier(sealed(Purpose::kMessage)), "127.0.0.1").lineage().Serialize(), "1~_.i");
  EXPECT_EQ(MessageScope(HeaderCarrier(sealed(Purpose::kMessage))).lineage().Serialize(), "1~a..e.1");
}

TEST(Requests, WithAPublicResponseCarryAMarkAlone_PROP_16) {
  const Isolation isolation;
  Headers response{{"Cache-Control", "max-age=60, Public"}};
  Scope scope = ExtractRequest(HeaderCarrier(Headers()), "127.0.0.1");
  Append(At("a", 2));
  scope.InjectResponse(HeaderCarrier(response));
  EXPECT_EQ(response, (Headers{{"Cache-Control", "max-age=60, Public"}, {"antipode-lineage", "1~_.i"}}));
  EXPECT_EQ(Isolation::Counted("antipode.write.late"), 0U);
  Append(At("a", 3));
  EXPECT_EQ(Isolation::Counted("antipode.write.late", {"store=other"}), 1U);
}

TEST(Requests, KeepTheApplicationsBaggageAsItIs_PROP_3_PROP_8_PROP_10) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  Headers headers{{"Baggage", "user=7;ttl=1,antipode=1~old..e.9"}, {"Antipode-Lineage", "1~old..e.9"}};
  ASSERT_FALSE(InjectRequest(HeaderCarrier(headers), "localhost"));
  EXPECT_EQ(headers.find("Baggage")->second, "user=7;ttl=1,antipode=1~a..e.1");
  EXPECT_EQ(headers.count("Antipode-Lineage"), 0U);
}

TEST(Requests, ToAHostThatIsNotApprovedLoseAnOlderLineage_TRUST_25_TRUST_26_TRUST_29) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  Headers headers{{"baggage", "user=7,antipode=1~a..e.1"}, {"antipode-lineage", "1~a..e.1"}};
  ASSERT_FALSE(InjectRequest(HeaderCarrier(headers), "api.example.org:443"));
  EXPECT_EQ(headers, (Headers{{"baggage", "user=7"}}));
  EXPECT_TRUE(
      isolation.Said("did not send a lineage to api.example.org:443 (request out): the host is not approved. If "
                     "it is one of yours add it to ANTIPODE_PEERS. [AP404] dropped=1"));
  ExtractResponse(HeaderCarrier(Headers{{"antipode-lineage", "1~b..e.1"}}), "api.example.org:443");
  EXPECT_EQ(scope.lineage(), Read("1~a..e.1"));
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=untrusted", "direction=response_in"}), 1U);
}

TEST(Requests, FromAPublicPeerAreNotBelieved_TRUST_10_TRUST_27_TRUST_28) {
  const Isolation isolation;
  const Headers headers{{"antipode-lineage", "1~a..e.1"}, {"X-Forwarded-For", "203.0.113.9"}};
  for (int i = 0; i < 3; ++i) {
    const Scope scope = ExtractRequest(HeaderCarrier(headers), "10.0.0.1");
    EXPECT_TRUE(scope.lineage().empty());
    ASSERT_EQ(scope->gaps().size(), 1U);
    EXPECT_EQ(scope->gaps().front().reason, "untrusted");
  }
  const std::vector<std::string> lines = isolation.lines();
  EXPECT_EQ(
      std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.rfind("WARNING", 0) == 0; }),
      1);  // OBS-7: once a minute a kind
  EXPECT_TRUE(isolation.Said("WARNING dropped a lineage from 203.0.113.9 (request in): X-Forwarded-For has a public "
                             "address. If this is the edge set ANTIPODE_EDGE=true; if applications copy that header "
                             "inside, ANTIPODE_FORWARDED=ignore. [AP403] dropped=1"));
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=untrusted"}), 3U);
}

TEST(Requests, AtAnEdgeAreNeitherBelievedNorAnswered_TRUST_4_TRUST_5) {
  const Isolation isolation;
  Headers response{{"antipode-lineage", "set by the application"}};
  const Headers request{{"baggage", "antipode=1~a..e.1"}};
  Scope scope = ExtractRequest(HeaderCarrier(request), "127.0.0.1", true);
  EXPECT_TRUE(scope.lineage().empty());
  Append(At("b", 1));
  scope.InjectResponse(HeaderCarrier(response));
  EXPECT_TRUE(response.empty());
  Headers onwards;
  ASSERT_FALSE(InjectRequest(HeaderCarrier(onwards), "inside"));
  EXPECT_EQ(onwards.find("baggage")->second, "antipode=1~b..e.1");
}

TEST(Requests, ThatCannotBeReadAreIncompleteAnywhere_WIRE_25_WIRE_30_PROP_23) {
  const Isolation isolation;
  for (const char* value : {"", "nonsense", "1~s", "1~s..e.18446744073709551616"}) {
    const Headers headers{{"antipode-lineage", value}};
    const Scope scope = ExtractRequest(HeaderCarrier(headers), "127.0.0.1");
    EXPECT_EQ(scope.lineage().Serialize(), "1~_.i") << value;
    EXPECT_EQ(scope->gaps().front().reason, "malformed");
  }
  EXPECT_EQ(Isolation::Counted("antipode.lineage.dropped", {"reason=malformed"}), 4U);
}

TEST(Requests, BesideAPublicForwardingHeaderSaySo_TRUST_30) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  Headers headers{{"Forwarded", "for=203.0.113.9"}};
  ASSERT_FALSE(InjectRequest(HeaderCarrier(headers), "inside"));
  EXPECT_TRUE(isolation.Said("sent a lineage to inside beside Forwarded, which has a public address (203.0.113.9)"));
}

TEST(Requests, WithoutAnAnswerAreIncomplete_PROP_27) {
  const Isolation isolation;
  const Scope scope;
  Unanswered("api.example.org", "deadline exceeded");
  EXPECT_TRUE(scope.lineage().empty());
  Unanswered("inside", "deadline exceeded");
  EXPECT_EQ(scope.lineage().Serialize(), "1~_.i");
  EXPECT_EQ(scope->gaps().front().detail, "a call to inside brought no answer: deadline exceeded");
}

TEST(Requests, WithModeOffPassThrough_PROP_26) {
  const Isolation isolation(Variables{{"ANTIPODE_MODE", "off"}});
  Headers response;
  Scope scope = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", "1~a..e.1"}}), "127.0.0.1");
  Append(At("b", 1));
  scope.InjectResponse(HeaderCarrier(response));
  EXPECT_TRUE(response.empty());
  Unanswered("inside", "cut");
  EXPECT_TRUE(scope.lineage().IsComplete());
}

TEST(Requests, OfJaegersClientsAreReadAndAnswered_PROP_7) {
  const Isolation isolation;
  Map carrier{{"uber-trace-id", "1:2:0:1"}, {"uberctx-antipode", "1~a..e.1%20"}};
  const Scope scope = ExtractRequest(ThriftCarrier(carrier), "127.0.0.1");
  EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.1");
  Map next{{"uber-trace-id", "1:3:2:1"}};
  ASSERT_FALSE(InjectRequest(ThriftCarrier(next), "inside"));
  EXPECT_EQ(next.at("uberctx-antipode"), "1~a..e.1");
  EXPECT_EQ(next.at("baggage"), "antipode=1~a..e.1");
  SetPropagationFormats({false, true});
  Map jaeger;
  ASSERT_FALSE(InjectRequest(ThriftCarrier(jaeger), "inside"));
  EXPECT_EQ(jaeger, (Map{{"uberctx-antipode", "1~a..e.1"}}));
}

TEST(Requests, WithoutABaggagePropagatorUseTheirOwnHeader_PROP_9) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  SetPropagationFormats({false, false});
  Headers headers;
  ASSERT_FALSE(InjectRequest(HeaderCarrier(headers), "inside"));
  EXPECT_EQ(headers, (Headers{{"antipode-lineage", "1~a..e.1"}}));
}

// What gRPC's contexts and metadata look like, without gRPC.
struct StringRef {
  const char* text;
  std::size_t length;
  const char* data() const { return text; }
  std::size_t size() const { return length; }
  bool operator<(const StringRef& other) const { return text < other.text; }
};
struct ClientContext {
  Headers sent;
  void AddMetadata(const std::string& name, const std::string& value) { sent.emplace(name, value); }
};
struct ServerContext {
  Headers trailing;
  void AddTrailingMetadata(const std::string& name, const std::string& value) { trailing.emplace(name, value); }
};

TEST(Grpc, CarriesInMetadataAndAnswersInTrailers_PROP_15) {
  const Isolation isolation;
  const Scope caller(Read("1~a..e.1"));
  ClientContext client;
  ASSERT_FALSE(InjectRequest(GrpcWriter(client), "dns:post-storage"));
  EXPECT_TRUE(client.sent.empty());  // no host of ours is called so
  ASSERT_FALSE(InjectRequest(GrpcWriter(client), "post-storage:50051"));
  EXPECT_EQ(client.sent, (Headers{{"antipode-lineage", "1~a..e.1"}}));
  const std::string& value = client.sent.begin()->second;
  const std::multimap<StringRef, StringRef> metadata{{{"antipode-lineage", 16}, {value.data(), value.size()}}};
  ServerContext server;
  {
    Scope callee = ExtractRequest(GrpcCarrier(metadata), "ipv4:10.0.0.1:5000");
    EXPECT_EQ(callee.lineage(), Read("1~a..e.1"));
    Append(At("posts", 1));
    callee.InjectResponse(GrpcWriter(server));
  }
  EXPECT_EQ(server.trailing, (Headers{{"antipode-lineage", "1~posts..e.1"}}));
}

TEST(Headers, StandInAnyContainer) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  std::vector<std::pair<std::string, std::string>> lines{{"Baggage", "a=1"}, {"baggage", "b=2"}};
  ASSERT_FALSE(InjectRequest(HeaderCarrier(lines), "inside"));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines.front().second, "a=1,b=2,antipode=1~a..e.1");
}

TEST(Budget, LeavesStoresOutOfWhatLeavesAndSaysSo_WIRE_36) {
  const Isolation isolation(Variables{{"ANTIPODE_BUDGET_BYTES", "24"}});
  const Scope scope(Read("1~a..e.1~long-store..epoch.12345"));
  Headers headers;
  ASSERT_FALSE(InjectRequest(HeaderCarrier(headers), "inside"));
  EXPECT_EQ(headers.find("baggage")->second, "antipode=1~a..e.1~_.i");
  EXPECT_EQ(scope.lineage(), Read("1~a..e.1~long-store..epoch.12345"));
  EXPECT_TRUE(isolation.Said("Raise ANTIPODE_BUDGET_BYTES (24 now)."));
  EXPECT_EQ(Isolation::Counted("antipode.lineage.incomplete", {"reason=budget", "store="}), 1U);
}

TEST(Hosts, OfAResolverThatNobodyKnowsAreNotApproved_TRUST_35) {
  const Isolation isolation;
  const Scope scope(Read("1~a..e.1"));
  for (const char* host : {"xds:///posts.internal", "xds:///posts", "consul://posts.internal/x"}) {
    Headers headers;
    ASSERT_FALSE(InjectRequest(HeaderCarrier(headers), host));
    EXPECT_TRUE(headers.empty()) << host;
  }
}

TEST(Names, FromTheWireAreShownEscapedAndFew_OBS_12_OBS_13) {
  const Isolation isolation(Variables{{"ANTIPODE_BUDGET_BYTES", "16"}, {"ANTIPODE_STORES", "known"}});
  std::string text = "1~a_0AERROR_20forged_1B..e.1~known..e.1";
  for (int i = 0; i < 9; ++i) text += "~s" + std::to_string(i) + "..e.1";
  Scope scope = ExtractRequest(HeaderCarrier(Headers{{"antipode-lineage", text}}), "127.0.0.1");
  scope->MarkIncomplete("pending", {"known", "a\nERROR forged\x1B"});
  Headers request;
  ASSERT_FALSE(InjectRequest(HeaderCarrier(request), "inside"));
  EXPECT_TRUE(isolation.Said("some stores"));
  EXPECT_FALSE(isolation.Said("\nERROR"));
  EXPECT_EQ(Isolation::Counted("antipode.lineage.incomplete", {"reason=pending", "store=known"}), 1U);
  EXPECT_EQ(Isolation::Counted("antipode.lineage.incomplete", {"reason=pending", "store=other"}), 1U);
  EXPECT_EQ(ShownList({"a\n", "b", "c", "d", "e", "f", "g"}), "'a\\x0a', b, c, d, e and 2 more");
}

TEST(Keys, SealWhatLeavesAndAreAskedOfWhatArrives_TRUST_2_TRUST_23_TRUST_28) {
  const Isolation isolation;
  SettingWords words;
  words.keys = *Keys::Make({{"k1", std::string(16, 'k')}});
  ASSERT_TRUE(Configure(words).ok());
  EXPECT_EQ(CurrentSettings()->trust, Trust::kKey);
  std::string sent;
  {
    const Scope scope(Read("1~a..e.1"));
    sent = **OutgoingMessage();
  }
  EXPECT_EQ(sent.find("1~a..e.1~_.h.k1."), 0U);
  {
    const Scope scope = MessageScope(sent);
    EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.1");
  }
  const Scope scope = MessageScope("1~a..e.1");
  EXPECT_EQ(scope.lineage().Serialize(), "1~_.i");
  EXPECT_EQ(scope->gaps().front().reason, "seal");
  EXPECT_TRUE(isolation.Said("dropped a lineage from a message (message in): it has no seal."));
}

TEST(Messages, CarryTheLineageInTheirOwnHeader_PROP_17_PROP_18_PROP_20) {
  const Isolation isolation;
  EXPECT_FALSE(OutgoingMessage()->has_value());
  std::string header;
  {
    const Scope scope(Read("1~posts..e.7"));
    EXPECT_FALSE(OutgoingMessage(false)->has_value());
    header = **OutgoingMessage();
  }
  for (const char* name : {"antipode-lineage", "antipode_lineage", "Antipode-Lineage"}) {
    const Map properties{{name, header}, {"baggage", "antipode=1~other..e.1"}};
    const Scope scope = MessageScope(HeaderCarrier(properties));
    EXPECT_EQ(scope->kind(), ScopeKind::kMessage);
    EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.7");
    EXPECT_TRUE(scope->Additions().empty());
  }
}

TEST(Messages, ThatAreNotTakenAreDropped_TRUST_4_TRUST_31) {
  const Isolation isolation;
  MessageOptions options;
  options.lineage_in = false;
  {
    const Scope scope = MessageScope("1~a..e.1", options);
    EXPECT_TRUE(scope.lineage().empty());
  }
  SettingWords words;
  words.edge = true;
  ASSERT_TRUE(Configure(words).ok());
  {
    const Scope scope = MessageScope("1~a..e.1");
    EXPECT_TRUE(scope.lineage().empty());
  }
  options.lineage_in = true;  // the operator's word
  const Scope scope = MessageScope("1~a..e.1", options);
  EXPECT_FALSE(scope.lineage().empty());
}

TEST(Values, RestBesideTheirLineage_SHIM_14_LIN_16_LIN_19) {
  const Isolation isolation;
  EXPECT_EQ(TextAtRest(Lineage()), "");
  EXPECT_EQ(TextAtRest(Read("1~a..e.1~_.i.b")), "1~a..e.1~_.i.b");
  EXPECT_EQ(TextAtRest(Read("1~a..e.1"), false), "");
  EXPECT_TRUE(LineageAtRest("", "posts").empty());
  EXPECT_EQ(LineageAtRest("1~a..e.1 1~b..e.1", "posts").Serialize(), "1~a..e.1~b..e.1");
  EXPECT_EQ(LineageAtRest("1~a..e.1 broken", "posts").Serialize(), "1~a..e.1~_.i.posts");
  EXPECT_TRUE(LineageAtRest("1~a..e.1", "posts", false).empty());
}

TEST(OnPending, KeepsARequestFromBeingWritten_SCOPE_19) {
  const Isolation isolation(Variables{{"ANTIPODE_ON_PENDING", "raise"}});
  const Scope scope;
  const PendingPtr write = scope->Begin("posts");
  Headers headers;
  const auto error = InjectRequest(HeaderCarrier(headers), "inside");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, ErrorCode::kPendingWrite);
  EXPECT_TRUE(headers.empty());
}

}  // namespace
}  // namespace antipode::testing
