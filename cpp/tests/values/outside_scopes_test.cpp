// What leaves outside any scope: nothing, or an incomplete lineage (SCOPE-31).
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "environment.h"

namespace antipode::testing {
namespace {

using Headers = std::multimap<std::string, std::string>;
using Map = std::map<std::string, std::string>;

WriteId At(const std::string& store, std::uint64_t counter) { return *WriteId::Position(store, "e", counter); }

Map SentTo(const std::string& host, Map headers = {}) {
  EXPECT_FALSE(InjectRequest(ThriftCarrier(headers), host));
  return headers;
}

TEST(OutsideAnyScope, WhatLeavesIsIncompleteOnceTheProcessHasKnownALineage_SCOPE_31) {
  const std::vector<std::function<void()>> happenings = {
      [] { Append(At("posts", 7)); },
      [] {
        const Scope scope;
        Append(At("posts", 7));
      },
      [] {
        const Scope scope;
        const PendingPtr write = scope->Begin("posts");
      },
      [] { const Scope scope = ExtractRequest(HeaderCarrier(Headers{{"baggage", "antipode=1~a..e.1"}}), "10.0.0.7"); },
      [] { ExtractResponse(HeaderCarrier(Headers{{"antipode-lineage", "1~a..e.1"}}), "inside"); },
  };
  for (const auto& happen : happenings) {
    const Isolation isolation;
    EXPECT_TRUE(SentTo("inside").empty());
    EXPECT_FALSE(*OutgoingMessage());
    happen();
    EXPECT_EQ(SentTo("inside"), (Map{{"baggage", "antipode=1~_.i"}}));
    EXPECT_EQ(**OutgoingMessage(), "1~_.i");
    EXPECT_TRUE(isolation.Said("AP418"));
    EXPECT_TRUE(SentTo("example.org").empty());
    const Scope scope;
    EXPECT_TRUE(SentTo("inside").empty());
  }
}

TEST(OutsideAnyScope, WhatTheApplicationGaveALineageStays_SCOPE_31) {
  const Isolation isolation;
  Append(At("posts", 7));
  EXPECT_EQ(SentTo("inside", {{"antipode-lineage", "1~a..e.1"}}), (Map{{"antipode-lineage", "1~a..e.1"}}));
  EXPECT_EQ(SentTo("inside", {{"baggage", "a=1,antipode=1~a..e.1"}}), (Map{{"baggage", "a=1,antipode=1~a..e.1"}}));
}

TEST(OutsideAnyScope, NothingIsAddedWithTheModeOff_SCOPE_31) {
  const Isolation isolation(Variables{{"ANTIPODE_MODE", "off"}});
  Append(At("posts", 7));
  EXPECT_TRUE(SentTo("inside").empty());
  EXPECT_FALSE(*OutgoingMessage());
}

}  // namespace
}  // namespace antipode::testing
