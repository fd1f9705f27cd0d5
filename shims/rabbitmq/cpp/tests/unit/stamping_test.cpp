// What leaves with a message, without a broker: the lineage in a copy of the headers, and nothing else is changed
// (PROP-17, PROP-19, PROP-20, SHIM-17, TRUST-5, TRUST-31).
#include "stamping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "antipode/keys.h"
#include "antipode/logs.h"
#include "antipode/messages.h"
#include "antipode/settings.h"
#include "antipode/testing/isolated.h"
#include "broker.h"
#include "headers.h"
#include "octets.h"
#include "shim.h"

namespace antipode::rabbitmq {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Texts = std::vector<std::pair<std::string, std::string>>;

constexpr int kFrame = 131072;
const char* const kText = "1~blog..0-1.42";

class StampingTest : public ::testing::Test {
 protected:
  StampingTest() {
    told.store = *JoinStore(RabbitMQType(), StoreOptions("notifications"));
    SetLogSink([this](LogLevel, std::string_view line) { log += line; });
  }
  ~StampingTest() override { SetLogSink({}); }

  // A message's own headers, as texts.
  amqp_basic_properties_t Given(Texts texts) {
    given_ = std::move(texts);
    entries_.clear();
    for (const auto& [name, text] : given_) {
      amqp_table_entry_t entry{};
      entry.key = Octets(name);
      entry.value.kind = AMQP_FIELD_KIND_UTF8;
      entry.value.value.bytes = Octets(text);
      entries_.push_back(entry);
    }
    amqp_basic_properties_t made{};
    made._flags = AMQP_BASIC_HEADERS_FLAG;
    made.headers = {static_cast<int>(entries_.size()), entries_.data()};
    return made;
  }

  static Texts TextsIn(const amqp_table_t& headers) {
    Texts texts;
    TableCarrier(headers).ForEach(
        [&](std::string_view name, std::string_view value) { texts.emplace_back(name, value); });
    return texts;
  }

  Texts Sent(const amqp_basic_properties_t* given, int frame_max = kFrame) {
    Properties properties(given);
    const Result<void> done = Stamp(told, properties, std::nullopt, frame_max, Site());
    if (!done.ok()) return {{ErrorName(done.error().code).data(), done.error().message}};
    return TextsIn(properties.headers());
  }
  Texts Sent(Texts texts = {}, int frame_max = kFrame) {
    const amqp_basic_properties_t given = Given(std::move(texts));
    return Sent(&given, frame_max);
  }

  testing::Isolated isolated;
  WrapArguments told;
  std::string log;

 private:
  Texts given_;
  std::vector<amqp_table_entry_t> entries_;
};

WriteId Write() { return *WriteId::Position("blog", "0-1", 42); }

TEST_F(StampingTest, LineageIsTheLastHeaderOfACopy) {
  Scope scope;
  Append(Write());
  const amqp_basic_properties_t given = Given({{"mine", "1"}});
  EXPECT_THAT(Sent(&given), ElementsAre(Pair("mine", "1"), Pair("antipode-lineage", kText)));
  EXPECT_THAT(TextsIn(given.headers), ElementsAre(Pair("mine", "1")));  // the caller's stay as they are
  EXPECT_THAT(Sent(nullptr), ElementsAre(Pair("antipode-lineage", kText)));
}

TEST_F(StampingTest, NothingIsAddedWithoutALineage) {
  EXPECT_THAT(Sent(nullptr), ElementsAre());
  Scope scope;
  EXPECT_THAT(Sent(nullptr), ElementsAre());
  told.stamped = true;
  EXPECT_THAT(Sent(nullptr), ElementsAre(Pair("antipode-lineage", "1")));
}

TEST_F(StampingTest, StampedOutsideAnyScopeNobodyKnows) {
  told.stamped = true;
  EXPECT_THAT(Sent(nullptr), ElementsAre());
}

TEST_F(StampingTest, AnApplicationsOwnHeaderIsLeftAlone) {
  Scope scope;
  Append(Write());
  EXPECT_THAT(Sent({{"antipode-lineage", "the horse's"}}), ElementsAre(Pair("antipode-lineage", "the horse's")));
  EXPECT_THAT(log, HasSubstr("is no lineage"));
}

TEST_F(StampingTest, WhatCameInGoesOnJoined) {
  {
    Scope scope;
    Append(Write());
    EXPECT_THAT(Sent({{"antipode-lineage", "1~acl..0-1.7"}, {"antipode_lineage", "1~img..0-1.3"}, {"mine", "1"}}),
                ElementsAre(Pair("mine", "1"), Pair("antipode-lineage", "1~acl..0-1.7~blog..0-1.42~img..0-1.3")));
  }
  EXPECT_THAT(Sent({{"antipode-lineage", "1~acl..0-1.7"}}), ElementsAre(Pair("antipode-lineage", "1~acl..0-1.7")));
}

TEST_F(StampingTest, WhatWasNotBelievedDoesNotGoOn) {  // TRUST-5
  told.lineage_in = false;
  EXPECT_THAT(Sent({{"antipode-lineage", "1~acl..0-1.7"}, {"mine", "1"}}), ElementsAre(Pair("mine", "1")));
  { const Scope known(*Lineage::Deserialize("1~a..e.1")); }
  for (const char* name : {"antipode-lineage", "antipode_lineage"}) {
    EXPECT_THAT(Sent({{name, "1~acl..0-1.7"}, {"mine", "1"}}),
                ElementsAre(Pair("mine", "1"), Pair("antipode-lineage", "1~_.i")));  // SCOPE-31
    Scope scope;
    Append(Write());
    EXPECT_THAT(Sent({{name, "1~acl..0-1.7"}, {"mine", "1"}}),
                ElementsAre(Pair("mine", "1"), Pair("antipode-lineage", kText)));
  }
}

TEST_F(StampingTest, OptionsAndTrustDecideWhatLeaves) {  // TRUST-31
  Scope scope;
  Append(Write());
  told.lineage_out = false;
  EXPECT_THAT(Sent({{"antipode-lineage", "1~x..e.1"}, {"mine", "1"}}), ElementsAre(Pair("mine", "1")));
  told.lineage_out.reset();
  SettingWords none;
  none.trust = Trust::kNone;
  ASSERT_TRUE(Configure(none).ok());
  EXPECT_THAT(Sent(nullptr), ElementsAre());
}

TEST_F(StampingTest, ALineageNeverFillsAFrame) {  // PROP-19
  Scope scope;
  for (int number = 0; number < 20; ++number) {
    Append(*WriteId::Position("store-" + std::to_string(number), "0123456789abcdef", 1000000000000));
  }
  const Texts fits = {{"big", std::string(4096 - 60, 'x')}};
  EXPECT_EQ(Sent(fits, 4096), fits);
  EXPECT_THAT(log, HasSubstr("no room"));
  const Texts nearly = {{"big", std::string(4096 - 200, 'x')}};
  EXPECT_THAT(Sent(nearly, 4096), ElementsAre(nearly[0], Pair("antipode-lineage", "1~_.i")));
  told.on_no_room = OnNoRoom::kRaise;
  EXPECT_THAT(Sent(fits, 4096), ElementsAre(Pair("ConfigurationError", HasSubstr("no room"))));
  const Texts sent = Sent({}, 4096);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(Lineage::Deserialize(sent[0].second)->IsComplete());
}

TEST_F(StampingTest, NoLineageIsLeftOutInSilence) {  // where its own headers nearly fill the frame, too
  Scope scope;
  Append(Write());
  int said = 0;
  for (std::size_t most = 4096 - 200; most <= 4096; ++most) {
    const Texts texts = {{"big", std::string(most, 'x')}};
    const amqp_basic_properties_t given = Given(texts);
    if (!FitsAFrame(Properties(&given), 4096)) continue;
    logs::Reset();
    log.clear();
    told.on_no_room = OnNoRoom::kSend;
    const Texts sent = Sent(texts, 4096);
    const bool has_it = sent.size() == 2 && sent[1].second == kText;
    EXPECT_NE(has_it, log.find("no room") != std::string::npos) << most;
    told.on_no_room = OnNoRoom::kRaise;
    EXPECT_EQ(has_it, Sent(texts, 4096) == sent) << most;
    said += has_it ? 0 : 1;
  }
  EXPECT_GT(said, 0);
}

TEST_F(StampingTest, WhatFitsIsWhatTheClientCanWrite) {
  std::size_t longest = 0;
  for (std::size_t most = 4000; most <= 4096; ++most) {
    const amqp_basic_properties_t given = Given({{"big", std::string(most, 'x')}});
    if (FitsAFrame(Properties(&given), 4096)) longest = most;
  }
  // The flags, the table's length, the name, its kind and the text's length are beside the text.
  EXPECT_EQ(longest, 4096 - (7 + 1 + 12) - 2 - 4 - (1 + 3) - 1 - 4);
}

TEST_F(StampingTest, ATrackedMessageHasAMarkOfItsOwn) {  // SHIM-17
  Properties plain(nullptr);
  const std::string mark = Mark(plain);
  EXPECT_EQ(mark.size(), 32U);
  EXPECT_EQ(MarkOf(plain.get()), mark);
  EXPECT_EQ(View(plain.get().message_id), mark);
  EXPECT_THAT(TextsIn(plain.headers()), ElementsAre());
  amqp_basic_properties_t given = Given({{"antipode-mark", "of another"}});
  given._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
  given.message_id = Octets("order-7");
  Properties again(&given);
  const std::string other = Mark(again);
  EXPECT_NE(other, mark);
  EXPECT_EQ(View(again.get().message_id), "order-7");
  EXPECT_THAT(TextsIn(again.headers()), ElementsAre(Pair("antipode-mark", other)));
  EXPECT_EQ(MarkOf(again.get()), other);
}

TEST_F(StampingTest, ACopyThatIsNotTrackedCarriesNoMarkOfTheFirst_PROP_37) {
  const std::string mark = "0123456789abcdef0123456789abcdef";
  const std::string lineage = "1~notifications.q._." + mark;
  const auto id_left = [&](const std::string& id, Texts headers) {
    amqp_basic_properties_t given = Given(std::move(headers));
    given._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
    given.message_id = Octets(id);
    Properties properties(&given);
    EXPECT_TRUE(Stamp(told, properties, std::nullopt, kFrame, Site()).ok());
    EXPECT_FALSE(TextOf(properties.headers(), "antipode-mark"));
    EXPECT_EQ(View(given.message_id), id) << "the caller's stay as they are";
    const bool has_id = (properties.get()._flags & AMQP_BASIC_MESSAGE_ID_FLAG) != 0;
    return has_id ? std::string(View(properties.get().message_id)) : std::string();
  };
  EXPECT_EQ(id_left(mark, {{"antipode-lineage", lineage}}), "") << "the lineage beside it names it";
  EXPECT_EQ(id_left("order-7", {{"antipode-lineage", lineage}, {"antipode-mark", mark}}), "order-7");
  EXPECT_EQ(id_left(mark, {}), mark) << "an application's own";
  const Scope scope(*Lineage::Deserialize(lineage));
  EXPECT_EQ(id_left(mark, {}), "") << "the scope names it";
  EXPECT_EQ(id_left("order-7", {}), "order-7");
}

TEST_F(StampingTest, TheMessagesOwnIdentifierIsInItsLineage) {
  Properties properties(nullptr);
  const std::string mark = Mark(properties);
  const WriteId own = *told.store->MakeWriteId("exchange", Opaque{mark});
  ASSERT_TRUE(Stamp(told, properties, own, kFrame, Site()).ok());
  const Lineage left = *Lineage::Deserialize(*TextOf(properties.headers(), kLineageHeader));
  EXPECT_THAT(left.ids(), ElementsAre(own));
}

TEST(Tap, AsText) {
  const Result<Tap> tap = Tap::Parse("amqp://guest:secret@127.0.0.1:5673/b#a%2Etap");
  ASSERT_TRUE(tap.ok());
  EXPECT_EQ(tap->queue, "a.tap");
  EXPECT_EQ(tap->Broker(), "amqp://127.0.0.1:5673/b");
  EXPECT_EQ(tap->Address(), "amqp://127.0.0.1:5673/b#a.tap");
  EXPECT_EQ(Tap::Parse("amqp://host#q")->Broker(), "amqp://host:5672/%2F");
  EXPECT_EQ(Tap::Parse("AMQP://host/#q")->Broker(), "amqp://host:5672/%2F");
  EXPECT_EQ(Tap::Parse("amqp://[::1]/%2F?heartbeat=5#q")->Broker(), "amqp://[::1]:5672/%2F");
  for (const char* bad : {"amqp://host/%2F", "http://host#q", "", "amqp://host#"}) {
    ASSERT_FALSE(Tap::Parse(bad).ok()) << bad;
    EXPECT_THAT(Tap::Parse(bad).error().message, HasSubstr("stream queue"));
  }
  EXPECT_EQ(Place::Parse("amqp://host/?heartbeat=5")->heartbeat, 5);
  EXPECT_FALSE(Place::Parse("amqps://host").ok());
}

}  // namespace
}  // namespace antipode::rabbitmq
