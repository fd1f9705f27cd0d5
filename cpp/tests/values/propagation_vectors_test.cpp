// The vectors of propagation and trust that every language runs.
#include <gtest/gtest.h>

#include <optional>

#include "antipode/propagation.h"
#include "antipode/wire.h"
#include "environment.h"
#include "model/text.h"
#include "propagation/carriers.h"
#include "propagation/exchange.h"
#include "propagation/shared_caches.h"
#include "trust/addresses.h"
#include "trust/seal.h"
#include "trust/trust.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

Lines LinesOf(const Json& headers) {
  Lines lines;
  for (const Json& header : headers) lines.emplace_back(header.at(0), header.at(1));
  return lines;
}

std::optional<std::string> TextOrNull(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional<std::string>(value.get<std::string>());
}

// What a believed receipt brings.
ReceivedLineage TakeAll(const std::vector<std::string>& texts) {
  const Decision caller = JudgeCaller("127.0.0.1", {}, TrustSettings());
  return Take(
      texts, [&caller](std::string_view text) { return JudgeRequestText(caller, text, TrustSettings(), 0); },
      Direction::kRequestIn, {});
}

TEST(PropagationVectors, Extract) {
  const Isolation isolation;
  RunVectors("propagation-extract", [](const Json& vector) {
    const Lines lines = LinesOf(vector.at("headers"));
    {
      const Scope scope = ExtractRequest(HeaderCarrier(lines), "127.0.0.1");
      EXPECT_EQ(scope.lineage().Serialize(), TextOrNull(vector.at("text")).value_or("1"));
    }
    EXPECT_EQ(TakeAll(ReadCarrier(HeaderCarrier(lines)).texts).malformed, vector.at("malformed").get<int>());
    std::vector<std::string> rest;
    for (const auto& [name, value] : lines) {
      if (!IsSameHeader(name, "baggage")) continue;
      const std::string without = WithoutMember(value);
      for (const std::string_view member : SplitAt(without, ',')) {
        if (!Trim(member, wire::kWhiteSpace).empty()) rest.emplace_back(Trim(member, wire::kWhiteSpace));
      }
    }
    EXPECT_EQ(rest, vector.at("rest").get<std::vector<std::string>>());
  });
}

TEST(PropagationVectors, Place) {
  const Isolation isolation;
  RunVectors("propagation-place", [](const Json& vector) {
    Lines lines;
    if (const auto baggage = TextOrNull(vector.at("baggage"))) lines.emplace_back("baggage", *baggage);
    if (vector.contains("uber_trace_id")) lines.emplace_back("uber-trace-id", vector.at("uber_trace_id"));
    if (vector.contains("uberctx_antipode")) lines.emplace_back("uberctx-antipode", vector.at("uberctx_antipode"));
    HeaderCarrier carrier(lines);
    const auto text = Give(Read(vector.at("text").get<std::string>()), TrustSettings(), Purpose::kRequest, nullptr, {});
    Rewrite(carrier, text, {vector.at("baggage_propagator").get<bool>(), vector.value("jaeger_propagator", false)});
    const auto found = [&carrier](std::string_view name) -> std::optional<std::string> {
      const std::vector<std::string> values = ValuesOf(carrier, name);
      EXPECT_LE(values.size(), 1U);
      return values.empty() ? std::nullopt : std::optional(values.front());
    };
    EXPECT_EQ(found("baggage"), TextOrNull(vector.at("out").at("baggage")));
    EXPECT_EQ(found("antipode-lineage"), TextOrNull(vector.at("out").at("antipode_lineage")));
    EXPECT_EQ(found("uberctx-antipode"), TextOrNull(vector.at("out").value("uberctx_antipode", Json())));
  });
}

TEST(PropagationVectors, Cache) {
  RunVectors("propagation-cache", [](const Json& vector) {
    Lines lines;
    for (const Json& line : vector.at("headers")) lines.emplace_back(line.at(0), line.at(1));
    const std::string method = vector.value("method", "GET");
    EXPECT_EQ(IsShared(HeaderCarrier(lines), method, vector.value("status", 200)), vector.at("shared").get<bool>());
  });
}

TEST(PropagationVectors, Names) {
  const std::map<std::string, std::string_view> names = {
      {"http-header", kLineageHeader},    {"baggage-key", kBaggageKey},  {"grpc-metadata", kLineageHeader},
      {"message-header", kLineageHeader}, {"jms-property", kJmsProperty}, {"jaeger-header", kJaegerHeader}};
  RunVectors("propagation-names", [&names](const Json& vector) {
    EXPECT_EQ(names.at(vector.at("carrier").get<std::string>()), vector.at("name").get<std::string>());
  });
}

Trust TrustWord(const std::string& word) {
  for (const Trust trust : {Trust::kPrivate, Trust::kAll, Trust::kNone, Trust::kKey}) {
    if (ToString(trust) == word) return trust;
  }
  ADD_FAILURE() << "unknown trust " << word;
  return Trust::kNone;
}

Result<TrustSettings> TrustOfWords(const Json& words) {
  Settings settings;
  settings.trust = TrustWord(words.value("trust", "private"));
  settings.edge = words.value("edge", false);
  settings.forwarded = words.value("forwarded", "check") == "ignore" ? Forwarded::kIgnore : Forwarded::kCheck;
  settings.peers = words.value("peers", std::vector<std::string>());
  if (settings.trust == Trust::kKey) settings.keys = *Keys::Make({{"k", std::string(16, 'k')}});
  return TrustOf(settings);
}

Keys KeysOf(const Json& vector) {
  Keys::Items items;
  for (const Json& key : vector.at("keys")) items.emplace_back(key.at("id"), OctetsOf(key, "key"));
  return *Keys::Make(items);
}

Purpose PurposeOf(const Json& vector) {
  const std::string words = "antipode " + vector.at("purpose").get<std::string>();
  for (const Purpose purpose : {Purpose::kRequest, Purpose::kResponse, Purpose::kMessage, Purpose::kValue}) {
    if (ToString(purpose) == words) return purpose;
  }
  ADD_FAILURE() << "unknown purpose " << words;
  return Purpose::kRequest;
}

TEST(TrustVectors, Addresses) {
  RunVectors("trust-addresses", [](const Json& vector) {
    const auto text = vector.at("text").get<std::string>();
    const bool is_private = vector.at("private");
    EXPECT_EQ(IsPrivatePeer(text), is_private);
    // White space and the empty text are no elements of a list; a peer they may be.
    if (!Trim(text, wire::kWhiteSpace).empty() && text.find(',') == std::string::npos) {
      EXPECT_EQ(JudgeCaller("::1", {{"X-Forwarded-For", text}}, TrustSettings()).accepted, is_private);
    }
  });
}

TEST(TrustVectors, Peers) {
  RunVectors("trust-peers", [](const Json& vector) {
    TrustSettings trust;
    trust.unix_peers = vector.value("unix", false);
    const std::string peer = TextOrNull(vector.at("peer")).value_or("");
    EXPECT_EQ(JudgeCaller(peer, {}, trust).accepted, vector.at("private").get<bool>());
  });
}

TEST(TrustVectors, RequestIn) {
  const std::map<Reason, std::string> because = {{Reason::kPeer, "peer"},        {Reason::kNoPeer, "peer"},
                                                 {Reason::kTooLong, "too long"}, {Reason::kEdge, "edge"},
                                                 {Reason::kOff, "none"},         {Reason::kSeal, "seal"}};
  RunVectors("trust-request-in", [&because](const Json& vector) {
    const auto trust = TrustOfWords(vector.at("settings"));
    ASSERT_TRUE(trust.ok());
    const std::string peer = TextOrNull(vector.at("peer")).value_or("");
    if (vector.contains("resolved")) return;  // a server in front: C++'s middlewares are given the socket's own peer
    const Decision caller = JudgeCaller(peer, LinesOf(vector.at("headers")), *trust);
    const Decision decision = JudgeRequestText(caller, "1", *trust, UnixTime());
    EXPECT_EQ(decision.accepted, vector.at("accept").get<bool>());
    if (decision.accepted) return;
    const std::string why = decision.header.empty() ? because.at(decision.reason) : Lower(decision.header);
    EXPECT_EQ(why, vector.at("because"));
  });
}

TEST(TrustVectors, Hosts) {
  RunVectors("trust-hosts", [](const Json& vector) {
    const auto trust = TrustOfWords(vector.at("settings"));
    if (vector.value("error", Json()) != Json()) {
      ASSERT_FALSE(trust.ok());
      EXPECT_EQ(trust.error().code, ErrorCode::kConfiguration);
      return;
    }
    ASSERT_TRUE(trust.ok()) << trust.error().message;
    const auto host = vector.at("host").get<std::string>();
    EXPECT_EQ(JudgeRequestOut(host, *trust).accepted, vector.at("approved").get<bool>());
    if (trust->trust == Trust::kPrivate) {
      EXPECT_EQ(IsApproved(host, *trust), vector.at("approved").get<bool>());
    }
  });
}

TEST(TrustVectors, SealMake) {
  RunVectors("trust-seal-make", [](const Json& vector) {
    TrustSettings trust;
    trust.trust = Trust::kKey;
    trust.keys = KeysOf(vector);
    trust.seal_ttl = std::chrono::nanoseconds(static_cast<std::int64_t>(vector.at("ttl").get<double>() * 1e9));
    trust.seal_rest_ttl = trust.seal_ttl;
    const std::string sealed =
        OutgoingText(vector.at("text"), trust, PurposeOf(vector), vector.at("now").get<double>());
    EXPECT_EQ(sealed, vector.at("sealed"));
  });
}

TEST(TrustVectors, Seal) {
  RunVectors("trust-seal", [](const Json& vector) {
    const auto text = vector.at("text").get<std::string>();
    const Keys keys = KeysOf(vector);
    const OpenedSeal opened = OpenSeal(text, keys, PurposeOf(vector), vector.at("now").get<double>());
    EXPECT_EQ(ToString(opened.state), vector.at("state").get<std::string>());
    if (opened.state == SealState::kValid || opened.state == SealState::kExpired) {
      EXPECT_EQ(opened.text, vector.at("body").get<std::string>());
    }
  });
}

TEST(TrustVectors, KeysFile) {
  RunVectors("trust-keys-file", [](const Json& vector) {
    const Result<Keys> keys = Keys::ParseFile(vector.at("file").get<std::string>(), "keys");
    if (vector.value("error", Json()) != Json()) {
      EXPECT_FALSE(keys.ok());
    } else {
      ASSERT_TRUE(keys.ok()) << keys.error().message;
      EXPECT_EQ(keys->ids(), vector.at("ids").get<std::vector<std::string>>());
    }
  });
}

}  // namespace
}  // namespace antipode::testing
