// The scope in OpenTelemetry's context, and the propagator round the application's own (PROP-3, PROP-8, PROP-24,
// TRUST-25).
#include "antipode/opentelemetry.h"

#include <gtest/gtest.h>
#include <opentelemetry/baggage/propagation/baggage_propagator.h>
#include <opentelemetry/context/propagation/composite_propagator.h>
#include <opentelemetry/trace/propagation/jaeger.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "antipode/lineage.h"
#include "environment.h"
#include "propagation/carriers.h"
#include "propagation/shared_caches.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

using api_context = opentelemetry::context::Context;
using opentelemetry::baggage::Baggage;
using opentelemetry::context::RuntimeContext;

class MapCarrier : public opentelemetry::context::propagation::TextMapCarrier {
 public:
  opentelemetry::nostd::string_view Get(opentelemetry::nostd::string_view key) const noexcept override {
    const auto found = headers.find(std::string(key));
    return found == headers.end() ? opentelemetry::nostd::string_view()
                                  : opentelemetry::nostd::string_view(found->second);
  }
  void Set(opentelemetry::nostd::string_view key, opentelemetry::nostd::string_view value) noexcept override {
    headers[std::string(key)] = std::string(value);
  }
  std::map<std::string, std::string> headers;
};

using Headers = std::map<std::string, std::string>;

otel::AntipodePropagator RoundBaggage() {
  return otel::AntipodePropagator(
      otel::AntipodePropagator::Inner(new opentelemetry::baggage::propagation::BaggagePropagator()));
}

api_context WithBaggage(const std::string& header) {
  api_context context;
  return opentelemetry::baggage::SetBaggage(context, Baggage::FromHeader(header));
}

// Hooks are the process's: each test ends without them.
class OpenTelemetry : public ::testing::Test {
 protected:
  void SetUp() override { otel::FollowRuntimeContext(); }
  void TearDown() override { SetContextHooks({}); }
  const Isolation isolation_;
};

TEST_F(OpenTelemetry, ContextHoldsTheScopeAndTakesItAlong_SCOPE_11) {
  const Scope scope;
  const api_context captured = RuntimeContext::GetCurrent();
  EXPECT_EQ(otel::ScopeIn(captured), std::optional<ScopePtr>(scope.shared()));
  std::thread([&] {
    EXPECT_EQ(CurrentScope(), nullptr);
    const auto token = RuntimeContext::Attach(captured);
    EXPECT_EQ(CurrentScope(), scope.shared());
    Append(*WriteId::Position("posts", "e", 1));
  }).join();
  EXPECT_EQ(scope.lineage().Serialize(), "1~posts..e.1");
}

TEST_F(OpenTelemetry, ContextIsAsItWasWhenTheScopeEnds) {
  {
    const Scope outer;
    {
      const Scope inner;
      EXPECT_EQ(CurrentScope(), inner.shared());
    }
    EXPECT_EQ(CurrentScope(), outer.shared());
  }
  EXPECT_EQ(CurrentScope(), nullptr);
  EXPECT_FALSE(otel::ScopeIn(RuntimeContext::GetCurrent()).has_value());
}

TEST_F(OpenTelemetry, ContextOfAForkedChildHoldsNoScope_SCOPE_13) {
  const Scope outer;
  const Scope inner;
  const pid_t child = fork();
  if (child == 0) _exit(CurrentScope() == nullptr ? 0 : 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(CurrentScope(), inner.shared());
}

// A carrier that lists its keys, and looks them up as they are spelled.
class ListingCarrier final : public MapCarrier {
 public:
  bool Keys(opentelemetry::nostd::function_ref<bool(opentelemetry::nostd::string_view)> visit) const noexcept override {
    return std::all_of(headers.begin(), headers.end(), [&](const auto& each) { return visit(each.first); });
  }
};

TEST_F(OpenTelemetry, CarrierShowsWhatTellsSharedCaches_PROP_34) {
  RunVectors("propagation-cache", [](const Json& vector) {
    ListingCarrier listing;
    MapCarrier plain;
    bool is_of_vendor = false;
    for (const Json& line : vector.at("headers")) {
      const std::string name = line.at(0);
      std::string lower = name;
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char each) { return std::tolower(each); });
      is_of_vendor = is_of_vendor || lower.find("-cdn-cache-control") != std::string::npos;
      for (std::string* const value : {&listing.headers[name], &plain.headers[lower]}) {
        *value += (value->empty() ? "" : ", ") + line.at(1).get<std::string>();
      }
    }
    const std::string method = vector.value("method", "GET");
    const int status = vector.value("status", 200);
    const bool is_shared = vector.at("shared");
    EXPECT_EQ(IsShared(otel::TextMapCarrier(std::as_const(listing)), method, status), is_shared);
    if (is_of_vendor) return;  // one that lists no keys shows what it is asked for
    EXPECT_EQ(IsShared(otel::TextMapCarrier(std::as_const(plain)), method, status), is_shared);
  });
}

TEST_F(OpenTelemetry, CarrierGivesEachSpellingOnce_PROP_34) {
  ListingCarrier listing;
  listing.headers = {{"Baggage", "a=1"}, {"baggage", "b=2"}, {"Cache-Control", "x=\"a"}, {"X-Accel-Expires", "0"}};
  std::multiset<std::string> values;
  otel::TextMapCarrier(std::as_const(listing)).ForEach([&values](std::string_view, std::string_view value) {
    values.emplace(value);
  });
  EXPECT_EQ(values, (std::multiset<std::string>{"0", "a=1", "b=2", "x=\"a"}));
}

TEST_F(OpenTelemetry, PropagatorWritesNothingWithoutApproval_TRUST_25) {
  const Scope scope(*Lineage::Deserialize("1~a..e.1"));
  MapCarrier carrier;
  RoundBaggage().Inject(carrier, WithBaggage("user=7"));
  EXPECT_EQ(carrier.headers, (Headers{{"baggage", "user=7"}}));
  EXPECT_TRUE(isolation_.Said("did not send a lineage with a call of OpenTelemetry's own instrumentation"));
  MapCarrier refused;
  {
    const otel::Approval approval("api.example.org");
    RoundBaggage().Inject(refused, WithBaggage("user=7"));
  }
  EXPECT_EQ(refused.headers, (Headers{{"baggage", "user=7"}}));
}

TEST_F(OpenTelemetry, PropagatorWritesEveryFormatThatIsInUse_PROP_7_PROP_8_PROP_9) {
  using Propagator = opentelemetry::context::propagation::TextMapPropagator;
  const Scope scope(*Lineage::Deserialize("1~a..e.1"));
  const otel::Approval approval("post-storage");
  std::string full = "k0=v";
  for (int number = 1; number < 64; ++number) full += ",k" + std::to_string(number) + "=v";
  for (const bool both : {false, true}) {
    std::vector<std::unique_ptr<Propagator>> inner;
    inner.push_back(std::make_unique<opentelemetry::trace::propagation::JaegerPropagator>());
    if (both) inner.push_back(std::make_unique<opentelemetry::baggage::propagation::BaggagePropagator>());
    otel::AntipodePropagator round(otel::AntipodePropagator::Inner(
        new opentelemetry::context::propagation::CompositePropagator(std::move(inner))));
    MapCarrier carrier;
    round.Inject(carrier, WithBaggage("user=7"));
    Headers wanted{{"uberctx-antipode", "1~a..e.1"}};
    if (both) wanted["baggage"] = "user=7,antipode=1~a..e.1";
    EXPECT_EQ(carrier.headers, wanted);
    if (!both) continue;
    MapCarrier without_room;
    round.Inject(without_room, WithBaggage(full));
    EXPECT_EQ(without_room.headers,
              (Headers{{"uberctx-antipode", "1~a..e.1"}, {"baggage", full}, {"antipode-lineage", "1~a..e.1"}}));
  }
}

TEST_F(OpenTelemetry, PropagatorWritesTheLastMemberOfBaggage_PROP_8_PROP_10) {
  const Scope scope(*Lineage::Deserialize("1~a..e.1"));
  const otel::Approval approval("post-storage:9090");
  MapCarrier carrier;
  RoundBaggage().Inject(carrier, WithBaggage("user=7,antipode=forged,tenant=a"));
  EXPECT_EQ(carrier.headers, (Headers{{"baggage", "user=7,tenant=a,antipode=1~a..e.1"}}));
}

TEST_F(OpenTelemetry, PropagatorUsesTheOwnHeaderWhereBaggageHasNoRoom_PROP_9) {
  const Scope scope(*Lineage::Deserialize("1~a..e.1"));
  const otel::Approval approval("post-storage:9090");
  std::string full;
  for (int i = 0; i < 64; ++i) full += (i == 0 ? "k" : ",k") + std::to_string(i) + "=v";
  MapCarrier carrier;
  RoundBaggage().Inject(carrier, WithBaggage(full));
  EXPECT_EQ(carrier.headers.at("baggage"), full);
  EXPECT_EQ(carrier.headers.at("antipode-lineage"), "1~a..e.1");
}

TEST_F(OpenTelemetry, PropagatorTakesTheLineageOutOfBaggageAndKeepsTheScope_PROP_3_TRUST_5) {
  const Scope scope;
  MapCarrier carrier;
  carrier.headers = {{"baggage", "user=7,antipode=1~a..e.1"}};
  api_context before = RuntimeContext::GetCurrent();
  const api_context context = RoundBaggage().Extract(carrier, before);
  EXPECT_EQ(opentelemetry::baggage::GetBaggage(context)->ToHeader(), "user=7");
  EXPECT_EQ(otel::ScopeIn(context), std::optional<ScopePtr>(scope.shared()));
}

TEST_F(OpenTelemetry, CarriersServeTheFourFunctions) {
  MapCarrier request;
  {
    const Scope scope(*Lineage::Deserialize("1~a..e.1"));
    ASSERT_FALSE(InjectRequest(otel::TextMapCarrier(request), "inside"));
  }
  EXPECT_EQ(request.headers, (Headers{{"baggage", "antipode=1~a..e.1"}}));
  const MapCarrier& arrived = request;
  const Scope scope = ExtractRequest(otel::TextMapCarrier(arrived), "127.0.0.1");
  EXPECT_EQ(scope.lineage().Serialize(), "1~a..e.1");
}

// An outbox relay's.
TEST_F(OpenTelemetry, OutsideAnyScopeTheApplicationsOwnLineageStays_SCOPE_31) {
  Append(*WriteId::Position("posts", "e", 7));
  MapCarrier own;
  own.headers = {{"antipode-lineage", "1~a..e.1"}};
  MapCarrier other;
  {
    const otel::Approval approval("inside");
    RoundBaggage().Inject(own, api_context());
    RoundBaggage().Inject(other, api_context());
  }
  EXPECT_EQ(own.headers, (Headers{{"antipode-lineage", "1~a..e.1"}}));
  EXPECT_EQ(other.headers, (Headers{{"baggage", "antipode=1~_.i"}}));
}

TEST_F(OpenTelemetry, InstrumentGoesRoundTheGlobalPropagatorOnce_PROP_24) {
  using Global = opentelemetry::context::propagation::GlobalTextMapPropagator;
  const auto before = Global::GetGlobalPropagator();
  otel::Instrument();
  const auto ours = Global::GetGlobalPropagator();
  EXPECT_NE(dynamic_cast<otel::AntipodePropagator*>(ours.get()), nullptr);
  otel::Instrument();
  EXPECT_EQ(Global::GetGlobalPropagator().get(), ours.get());
  Global::SetGlobalPropagator(before);
}

}  // namespace
}  // namespace antipode::testing
