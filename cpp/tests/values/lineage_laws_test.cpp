// The algebra as laws that hold for all lineages (LIN-6 to LIN-27), and the reader for all texts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>

#include "antipode/scope.h"
#include "antipode/wire.h"
#include "generators.h"
#include "model/parse.h"
#include "trust/seal.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

// As sets, flags and extensions too: `==` alone takes no part of those.
bool Same(const Lineage& a, const Lineage& b) { return a == b && Canonical(a) == Canonical(b); }

RC_GTEST_PROP(LineageLaws, JoiningIsCommutative_LIN_12, (const Lineage& a, const Lineage& b)) {
  RC_ASSERT(Same(a | b, b | a));
}

RC_GTEST_PROP(LineageLaws, JoiningIsAssociative_LIN_12, (const Lineage& a, const Lineage& b, const Lineage& c)) {
  RC_ASSERT(Same((a | b) | c, a | (b | c)));
}

RC_GTEST_PROP(LineageLaws, JoiningIsIdempotentAndEmptyItsUnit_LIN_12, (const Lineage& a)) {
  RC_ASSERT(Same(a | a, a));
  RC_ASSERT(Same(a | Lineage(), a));
  RC_ASSERT(Same(Lineage() | a, a));
}

RC_GTEST_PROP(LineageLaws, OrderIsThatOfJoining_LIN_13, (const Lineage& a, const Lineage& b)) {
  RC_ASSERT((a <= b) == ((a | b) == b));
  RC_ASSERT(a <= (a | b));
  const Order order = a.Compare(b);
  RC_ASSERT((order == Order::kEqual) == (a == b));
  RC_ASSERT((order == Order::kEqual || order == Order::kBefore) == (a <= b));
}

RC_GTEST_PROP(LineageLaws, EqualLineagesHashAlike_LIN_14, (const Lineage& a, const Lineage& b)) {
  RC_ASSERT((a | b).Hash() == (b | a).Hash());
  RC_ASSERT(a.MarkedIncomplete() == a);
  RC_ASSERT(a.MarkedIncomplete().Hash() == a.Hash());
}

RC_GTEST_PROP(LineageLaws, AppendingIsJoiningOne_LIN_7_LIN_8, (const Lineage& a, const WriteId& id)) {
  const Lineage appended = a.Including(id);
  RC_ASSERT(Same(appended, a | Lineage(id)));
  RC_ASSERT(appended.Covers(id));
  RC_ASSERT(a <= appended);
}

RC_GTEST_PROP(LineageLaws, AppendingManyIsAppendingEach_LIN_7, (const Lineage& a)) {
  const std::vector<WriteId> ids = *IdLists();
  Lineage one_by_one = a;
  for (const WriteId& id : ids) one_by_one = one_by_one.Including(id);
  RC_ASSERT(Same(a.Including(ids), one_by_one));
}

RC_GTEST_PROP(LineageLaws, NothingIsHeldTwice_LIN_7_LIN_8, (const Lineage& a)) {
  // Minimal: of no two entries does one cover the other.
  const std::vector<WriteId> ids = a.ids();
  for (const WriteId& x : ids) {
    for (const WriteId& y : ids) {
      if (x != y) RC_ASSERT(!Lineage(x).Covers(y));
    }
  }
}

RC_GTEST_PROP(LineageLaws, TakingAwayLeavesWhatIsNotCovered_LIN_21, (const Lineage& a, const Lineage& b)) {
  const Lineage rest = a.Without(b);
  RC_ASSERT(rest <= a);
  for (const WriteId& id : rest.ids()) RC_ASSERT(!b.Covers(id));
  RC_ASSERT((rest | a.Beyond(rest)) == a);
}

RC_GTEST_PROP(LineageLaws, AdditionsGiveBackTheWhole_LIN_27, (const Lineage& before, const Lineage& more)) {
  const Lineage after = before | more;
  const Lineage added = after.AddedTo(before);
  RC_ASSERT(Same(before | added, after));
  RC_ASSERT(after.AddedTo(after).empty());
}

RC_GTEST_PROP(LineageLaws, WhatIsWrittenIsRead_WIRE_1_WIRE_22, (const Lineage& a)) {
  const std::string text = a.Serialize();
  RC_ASSERT(Parse(text).ok());
  RC_ASSERT(Same(Read(text), a));
  RC_ASSERT(Read(text).Serialize() == text);
  RC_ASSERT(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") ==
            std::string::npos);
}

RC_GTEST_PROP(LineageLaws, TheBudgetHolds_WIRE_32_TO_WIRE_35, (const Lineage& a)) {
  const auto budget = *rc::gen::inRange<std::size_t>(16, 120);
  const Lineage fitted = a.Fit(budget);
  RC_ASSERT(fitted.Serialize().size() <= std::max<std::size_t>(budget, 6));
  RC_ASSERT(fitted <= a);
  // What was left out is marked: to join it again gives the entries of the whole.
  for (const std::string& store : a.stores()) {
    const std::vector<std::string> kept = fitted.stores();
    if (std::find(kept.begin(), kept.end(), store) == kept.end()) RC_ASSERT(!fitted.IsComplete({store}));
  }
}

RC_GTEST_PROP(LineageLaws, NamesSurvive_WIRE_2_WIRE_38, (const std::string& name)) {
  const std::string spelled = wire::Spell(name);
  RC_ASSERT(wire::Unspell(spelled) == name);
  RC_ASSERT(wire::IsSpelled(spelled));
}

RC_GTEST_PROP(Reader, TakesWhatIsCanonicalAndNothingElse_WIRE_25, ()) {
  const std::string text = *NearlyTexts();
  const Result<ParsedText> parsed = Parse(text);
  if (!parsed) {
    RC_ASSERT(parsed.error().code == ErrorCode::kMalformedLineage);
    return;
  }
  const Lineage lineage = Read(text);
  const std::string again = Canonical(lineage);
  RC_ASSERT(Same(Read(again), lineage));
  RC_ASSERT(Canonical(Read(again)) == again);
}

RC_GTEST_PROP(Reader, NeverFailsOtherwise_WIRE_25, (const std::string& text)) {
  RC_ASSERT(!Lineage::Deserialize("1~" + text + "\x01").ok());
  static_cast<void>(Lineage::Deserialize(text));
}

RC_GTEST_PROP(Seals, AreValidUntilTheyExpireForTheirPurpose_TRUST_19_TRUST_21, (const Lineage& a)) {
  const Keys keys = *Keys::Make({{"k-1", std::string(16, 'k')}});
  const std::string sealed = Seal(a.Serialize(), keys, Purpose::kRequest, 1000);
  RC_ASSERT(OpenSeal(sealed, keys, Purpose::kRequest, 1029.9).state == SealState::kValid);
  RC_ASSERT(OpenSeal(sealed, keys, Purpose::kRequest, 1029.9).text == a.Serialize());
  RC_ASSERT(OpenSeal(sealed, keys, Purpose::kRequest, 1030).state == SealState::kExpired);
  RC_ASSERT(OpenSeal(sealed, keys, Purpose::kMessage, 0).state == SealState::kBad);  // TRUST-36
  const std::string kept = Seal(a.Serialize(), keys, Purpose::kValue, 0);
  RC_ASSERT(OpenSeal(kept, keys, Purpose::kValue, 1e12).state == SealState::kValid);
  const std::string endless = Seal(a.Serialize(), keys, Purpose::kRequest, 0);
  RC_ASSERT(OpenSeal(endless, keys, Purpose::kRequest, 0).state == SealState::kBad);
  RC_ASSERT(StripSeal(sealed) == a.Serialize());
  std::string changed = sealed;
  const auto at = *rc::gen::inRange<std::size_t>(0, changed.size());
  changed[at] = changed[at] == 'a' ? 'b' : 'a';
  RC_ASSERT(OpenSeal(changed, keys, Purpose::kRequest, 1029.9).state != SealState::kValid);
}

TEST(Lineage, GrowsWithStoresAndNotWithWrites_LIN_11) {
  Lineage lineage;
  for (std::uint64_t i = 1; i <= 1000; ++i) lineage = lineage.Including(*WriteId::Position("posts", "e", i));
  EXPECT_EQ(lineage.Serialize(), "1~posts..e.1000");
  EXPECT_EQ(lineage.size(), 1U);
}

TEST(Lineage, KeepsEpochsAndMarksSideBySide_LIN_9) {
  const Lineage lineage({*WriteId::Position("s", "e1", 9), *WriteId::Position("s", "e2", 1),
                         *WriteId::Make("s", "k", Opaque{"m1"}), *WriteId::Make("s", "k", Opaque{"m2"}),
                         *WriteId::Make("s", "k", Ordered{"", 1})});
  EXPECT_EQ(lineage.size(), 5U);
}

TEST(Lineage, IsRaisedInPlaceAlsoWhereTheNumberGetsShorterOrLonger) {
  const Lineage lineage = Read("1~a..e.9~b..e.5~c..e.7~_.i.b");
  EXPECT_EQ(lineage.Including(*WriteId::Position("a", "e", 10)).Serialize(), "1~a..e.10~b..e.5~c..e.7~_.i.b");
  EXPECT_EQ(lineage.Including(*WriteId::Position("b", "e", 5)).Serialize(), lineage.Serialize());
  const Lineage raised =
      lineage.Including(*WriteId::Position("a", "e", 1000)).Including(*WriteId::Position("c", "e", 8));
  EXPECT_EQ(raised.Serialize(), "1~a..e.1000~b..e.5~c..e.8~_.i.b");
  EXPECT_EQ(raised.OnlyPosition("c", "e"), 8U);
  EXPECT_EQ(raised.OnlyPosition("c", "f"), std::nullopt);
}

TEST(Lineage, StaysAsItIsWhereNothingIsAdded_LIN_6) {
  const Lineage lineage = Read("1~a..e.9~_.i.b");
  EXPECT_TRUE((lineage | Read("1~a..e.3")).IsSame(lineage));
  EXPECT_TRUE((lineage | lineage).IsSame(lineage));
  EXPECT_TRUE(lineage.MarkedIncomplete({"b"}).IsSame(lineage));
}

TEST(WriteIds, OutsideTheBoundsFailAtOnce_LIN_1_TO_LIN_4) {
  EXPECT_FALSE(WriteId::Make("", "k", Ordered{"e", 1}).ok());
  EXPECT_FALSE(WriteId::Make(std::string(64, 's'), "k", Ordered{"e", 1}).ok());
  EXPECT_FALSE(WriteId::Position("s", "", 1).ok());
  EXPECT_FALSE(WriteId::Make("s", "k", Ordered{std::string(33, 'e'), 1}).ok());
  EXPECT_FALSE(WriteId::Make("s", "", Opaque{"m"}).ok());
  EXPECT_FALSE(WriteId::Make("s", "k", Opaque{""}).ok());
  const auto failed = WriteId::Make("", "k", Ordered{"e", 1});
  EXPECT_EQ(failed.error().message, "a store's name has 1 to 63 octets: '' [AP501]");
  const WriteId hashed = *WriteId::Make("s", std::string(2000, 'k'), Ordered{"", 1});
  EXPECT_EQ(Lineage(hashed).ids().front().key(), wire::HashedKey(std::string(2000, 'k')));
}

// The error is the programmer's to look at: to take a value that is not there ends the process.
TEST(ResultDeathTest, WithoutAValueEndsTheProcess) {
  const Result<Lineage> failed = Lineage::Deserialize("2");
  EXPECT_DEATH(static_cast<void>(failed.value()), "MalformedLineageError: not a lineage: '2'");
}

}  // namespace
}  // namespace antipode::testing
