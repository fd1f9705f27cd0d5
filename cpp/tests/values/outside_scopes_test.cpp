// What leaves outside any scope, or in one that has ended: nothing, or an incomplete lineage (SCOPE-31, SCOPE-34).
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/memory.h"
#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/reading.h"
#include "antipode/shim/write.h"
#include "environment.h"
#include "scope/context.h"
#include "scope/unscoped.h"

namespace antipode::testing {
namespace {

using Headers = std::multimap<std::string, std::string>;
using Map = std::map<std::string, std::string>;

WriteId At(const std::string& store, std::uint64_t counter) { return *WriteId::Position(store, "e", counter); }

Map SentTo(const std::string& host, Map headers = {}) {
  EXPECT_FALSE(InjectRequest(ThriftCarrier(headers), host));
  return headers;
}

std::shared_ptr<Store> Joined(const std::string& name) {
  static_cast<void>(MemoryStore(name, {"a"}).Client("a"));
  return FindStore(name).value();
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
      [] {
        Writing write(Joined("posts"));
        write.Abandon();
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

TEST(OutsideAnyScope, WhatRestsBesideAValueIsIncomplete_SCOPE_32) {
  const Isolation isolation;
  MemoryStore store("s", {"a"});
  MemoryClient client = store.Client("a", StoreOptions("s").RestIn("field"));
  const auto is_complete = [&](const std::string& key) {
    const Scope scope;
    const Reading seen;
    EXPECT_EQ(client.Get(key).value, "v");
    return seen.lineage().IsComplete();
  };
  static_cast<void>(client.Set("first", "v"));
  EXPECT_FALSE(isolation.Said("AP418"));
  static_cast<void>(client.Set("second", "v"));
  EXPECT_TRUE(isolation.Said("(value out)"));
  EXPECT_TRUE(is_complete("first"));
  EXPECT_FALSE(is_complete("second"));
  EXPECT_TRUE(LineageUnscoped(false, Site()).IsComplete()) << "nothing rests there, so nothing is told";
}

TEST(OutsideAnyScope, AWriteDoesNotCountBesideItsOwnValue_SCOPE_32) {
  const Isolation isolation;
  const auto store = Joined("s");
  {
    Writing first(store);
    EXPECT_TRUE(first.Beside().IsComplete());
    Writing second(store);
    EXPECT_FALSE(second.Beside().IsComplete());
    EXPECT_TRUE(second.Beside(false).IsComplete());
    EXPECT_FALSE(first.Beside().IsComplete()) << "another one does";
  }
  context::ForgetLineages();
  std::optional<Writing> write(std::in_place, store);
  EXPECT_TRUE(write->Beside().IsComplete());
  write.emplace(store);  // of unknown outcome; the next one may have its address
  EXPECT_FALSE(write->Beside().IsComplete());
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
  EXPECT_TRUE(LineageUnscoped(true, Site()).IsComplete()) << "SCOPE-32";
}

// What a context that somebody restores brings into another request (SCOPE-34).
TEST(EndedScope, WhileItIsCurrentNothingThatLeavesIsComplete_SCOPE_34) {
  const Isolation isolation;
  MemoryStore store("s", {"a"});
  MemoryClient client = store.Client("a", StoreOptions("s").RestIn("field"));
  const auto ended = std::make_shared<LineageScope>();
  ended->Stop();
  EXPECT_TRUE(ended->lineage().IsComplete()) << "whoever has it knows what it had";
  {
    const Activation current(ended);
    EXPECT_EQ(SentTo("inside"), (Map{{"baggage", "antipode=1~_.i"}}));
    EXPECT_EQ(**OutgoingMessage(), "1~_.i");
    EXPECT_EQ(*Serialize(), "1~_.i");
    EXPECT_FALSE(CurrentScope()->lineage().IsComplete());
    EXPECT_FALSE(DetachedScope().lineage().IsComplete());
    const BarrierResult result = Barrier();
    EXPECT_TRUE(result.satisfied() && !result.complete());
    ASSERT_EQ(result.gaps().size(), 1U) << "BAR-19";
    EXPECT_EQ(result.gaps().front().message_code(), "AP418");
    ASSERT_TRUE(client.Set("k", "v").ok());
  }
  const Scope reads;
  const Reading seen;
  EXPECT_EQ(client.Get("k").value, "v");
  EXPECT_FALSE(seen.lineage().IsComplete());
}

TEST(EndedScope, ItsOwnResponseAndItsLastPassSayWhatTheyKnow_SCOPE_34) {
  const Isolation isolation;
  MemoryStore store("of-its-own", {"a"});
  MemoryClient client = store.Client("a");
  Scope request = ExtractRequest(HeaderCarrier(Headers{}), "10.0.0.7");
  ASSERT_TRUE(client.Set("k", "v").ok());
  for (int times = 0; times < 2; ++times) EXPECT_TRUE(Barrier().complete());
  request->Stop();
  EXPECT_FALSE(Barrier().complete()) << "not by what was proved before, either";
  Headers answered;
  request.InjectResponse(HeaderCarrier(answered));
  ASSERT_EQ(answered.count("antipode-lineage"), 1U);
  EXPECT_TRUE(Deserialize(answered.find("antipode-lineage")->second)->IsComplete());
}

}  // namespace
}  // namespace antipode::testing
