// The vectors of the algebra that every language runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "antipode/scope.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

std::string TextOf(const Json& vector, const char* name) { return vector.at(name).get<std::string>(); }

TEST(LineageVectors, Join) {
  RunVectors("lineage-join", [](const Json& vector) {
    const Lineage a = Read(TextOf(vector, "a"));
    const Lineage b = Read(TextOf(vector, "b"));
    const std::string join = TextOf(vector, "join");
    EXPECT_EQ(Canonical(a | b), join);
    EXPECT_EQ(Canonical(b | a), join);
    EXPECT_EQ(Canonical(Read(join) | a), join);
    EXPECT_EQ(Canonical(Read(join) | b), join);
  });
}

TEST(LineageVectors, Associate) {
  RunVectors("lineage-associate", [](const Json& vector) {
    std::vector<std::string> texts = vector.at("texts");
    std::sort(texts.begin(), texts.end());
    do {
      const Lineage a = Read(texts[0]);
      const Lineage b = Read(texts[1]);
      const Lineage c = Read(texts[2]);
      EXPECT_EQ(Canonical((a | b) | c), vector.at("join"));
      EXPECT_EQ(Canonical(a | (b | c)), vector.at("join"));
    } while (std::next_permutation(texts.begin(), texts.end()));
  });
}

TEST(LineageVectors, Compare) {
  const std::map<Order, Order> mirrored = {{Order::kBefore, Order::kAfter},
                                           {Order::kAfter, Order::kBefore},
                                           {Order::kEqual, Order::kEqual},
                                           {Order::kConcurrent, Order::kConcurrent}};
  RunVectors("lineage-compare", [&mirrored](const Json& vector) {
    const Lineage a = Read(TextOf(vector, "a"));
    const Lineage b = Read(TextOf(vector, "b"));
    const Order order = a.Compare(b);
    EXPECT_EQ(ToString(order), TextOf(vector, "order"));
    EXPECT_EQ(b.Compare(a), mirrored.at(order));
    EXPECT_EQ(a == b, order == Order::kEqual);
    if (order == Order::kEqual) {
      EXPECT_EQ(std::hash<Lineage>()(a), std::hash<Lineage>()(b));
    }
  });
}

TEST(LineageVectors, Additions) {
  RunVectors("lineage-additions", [](const Json& vector) {
    const Lineage added = Read(TextOf(vector, "after")).AddedTo(Read(TextOf(vector, "before")));
    EXPECT_EQ(Canonical(added), TextOf(vector, "additions"));
    EXPECT_EQ(added.empty(), vector.at("nothing").get<bool>());
  });
}

TEST(LineageVectors, Complete) {
  RunVectors("lineage-complete", [](const Json& vector) {
    const std::vector<std::string> stores = vector.at("stores");
    EXPECT_EQ(Read(TextOf(vector, "text")).IsComplete(stores), vector.at("complete").get<bool>());
  });
}

void DoStep(LineageScope& scope, const Json& step) {
  const auto what = step.at("do").get<std::string>();
  if (what == "remove-entry") {
    const Removal removed = scope.Remove(GoodEntryOf(step.at("entry")));
    EXPECT_EQ(Canonical(removed.lineage), TextOf(step, "took"));
    EXPECT_EQ(!removed.still_covered.empty(), step.at("still_covered").get<bool>());
  } else if (what == "remove-store") {
    EXPECT_EQ(Canonical(scope.RemoveStore(TextOf(step, "store")).lineage), TextOf(step, "took"));
  } else if (what == "vouch") {
    scope.Vouch();
  } else if (what == "join") {
    scope.Merge(Read(TextOf(step, "text")));
  } else if (what == "append") {
    scope.Append(GoodEntryOf(step.at("entry")));
  } else {
    FAIL() << "unknown step " << what;
  }
}

TEST(LineageVectors, Remove) {
  RunVectors("lineage-remove", [](const Json& vector) {
    LineageScope scope(Read(TextOf(vector, "start")));
    for (const Json& step : vector.at("steps")) {
      DoStep(scope, step);
      EXPECT_EQ(Canonical(scope.lineage()), TextOf(step, "then"));
    }
  });
}

TEST(LineageVectors, Implausible) {
  RunVectors("lineage-implausible", [](const Json& vector) {
    const WriteId received = GoodEntryOf(vector.at("received"));
    LineageScope scope(Read(TextOf(vector, "at_sending")));
    const PendingPtr write = scope.Begin(received.store());
    scope.Transfer(Read(TextOf(vector, "at_reply")));
    scope.Written(write, received);
    EXPECT_EQ(Canonical(scope.lineage()), TextOf(vector, "result"));
    const std::vector<Gap> gaps = scope.gaps();
    const bool dropped =
        std::any_of(gaps.begin(), gaps.end(), [](const Gap& gap) { return gap.reason == "implausible"; });
    EXPECT_EQ(dropped, vector.at("dropped").get<bool>());
  });
}

}  // namespace
}  // namespace antipode::testing
