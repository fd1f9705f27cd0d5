// The codes of messages: behind the words of errors and log lines (OBS-14), and of a result's stores (OBS-15).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/logs.h"
#include "antipode/scope.h"
#include "engine/log_test.h"

namespace antipode::testing {
namespace {

TEST(MessageCodes, StandBehindTheFirstLine) {
  const Error error(ErrorCode::kUnfitStore, "AP208", "fsync is off.\n  Turn it on.");
  EXPECT_EQ(error.message, "fsync is off. [AP208]\n  Turn it on.");
  EXPECT_EQ(error.message_code, "AP208");
  EXPECT_EQ(error.Words(), "fsync is off.\n  Turn it on.");
  EXPECT_EQ(WithCode("a word", MessageCode::None()), "a word");
}

TEST(MessageCodes, StandInLogLinesBeforeTheCount) {
  const Isolated isolated;
  std::vector<std::string> lines;
  SetLogSink([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  logs::Warn("AP402", "a kind", "dropped it", "dropped");
  logs::Say("AP601", LogLevel::kError, "lost\nmore");
  SetLogSink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"dropped it [AP402] dropped=1", "lost [AP601]\nmore"}));
}

class BarrierCodes : public EngineTest {
 protected:
  // The result of a barrier on stores s0, s1, … that answer so, in the scope of a message.
  static BarrierResult Failed(const std::vector<Visibility>& answers, BarrierOptions options = {}) {
    std::vector<WriteId> ids;
    for (const Visibility& answer : answers) {
      const std::string name = "s" + std::to_string(ids.size());
      MakeFakeStore(name, {MakeFake(name, Always(answer))});
      ids.push_back(At(name, "e", 1));
    }
    const Scope scope(std::make_shared<LineageScope>(Lineage(ids), ScopeKind::kMessage, Delivery{true, {}}));
    return Barrier(options.Timeout(200ms));
  }
};

const Visibility kSeen = Visibility::Visible();
const Visibility kLate = Visibility::NotYet();
const Visibility kRight = Visibility::Unproven("no right", UnprovenKind::kRight);
const Visibility kUnfit = Visibility::Unproven("fsync", UnprovenKind::kUnfit);

// OBS-15: of the first unproven store, else of the first that was late; once, behind the first line.
TEST_F(BarrierCodes, AnErrorHasTheCodeOfTheStoreThatMadeItFail) {
  const auto unproven = [](Policy policy) { return BarrierOptions().OnUnproven(policy); };
  const std::vector<std::tuple<std::vector<Visibility>, BarrierOptions, MessageCode>> cases = {
      {{kSeen, kLate}, BarrierOptions(), "AP201"},
      {{kLate, kRight}, BarrierOptions(), "AP203"},
      {{kUnfit, kRight}, BarrierOptions(), "AP208"},
      {{kLate, kRight}, unproven(Policy::kProceed), "AP201"},
      {{kLate, kUnfit}, unproven(Policy::kAsTimeout), "AP208"},
      {{kUnfit}, unproven(Policy::kAsTimeout), "AP208"},
      {{kLate}, BarrierOptions().OnTimeout(Policy::kRedeliver), "AP201"},
      {{kRight}, unproven(Policy::kRedeliver), "AP203"},
  };
  for (const auto& [answers, options, code] : cases) {
    const Isolated isolated;
    const BarrierResult result = Failed(answers, options);
    ASSERT_NE(result.error(), nullptr) << result.Explain();
    const std::string& message = result.error()->message;
    EXPECT_EQ(result.error()->message_code, code) << message;
    const std::string shown = " [" + std::string(code.text()) + "]";
    const std::size_t end = message.find('\n');
    ASSERT_NE(end, std::string::npos) << "no cure: " << message;
    EXPECT_EQ(message.substr(end - shown.size(), shown.size()), shown) << message;
    EXPECT_EQ(message.find("[AP"), message.rfind("[AP")) << message;
    const std::string line = message.substr(0, end);
    EXPECT_TRUE(std::any_of(result.stores().begin(), result.stores().end(), [&, expected = code](const auto& each) {
      return each.second.message_code() == expected && line.find(each.first) != std::string::npos;
    })) << message;
    EXPECT_NE(result.Explain().find(shown + "\n"), std::string::npos) << result.Explain();
  }
}

// BAR-39: that nobody waited is no matter of the server.
TEST_F(BarrierCodes, OverloadHasItsOwn) {
  SettingWords words;
  words.max_waiters = 0;
  Set(words);
  const BarrierResult result = Failed({kLate});
  ASSERT_NE(result.error(), nullptr);
  EXPECT_EQ(result.error()->message_code, "AP205") << result.Explain();
}

// Words of a result that are no error, and of a barrier that knows none of the stores.
TEST_F(BarrierCodes, OfNothingToWaitForAndNothingJudged) {
  MakeFakeStore("s", {MakeFake("s", Always(kSeen))});
  const std::string nothing = Barrier(Lineage()).Explain();
  EXPECT_NE(nothing.find("nothing to wait for [AP102]"), std::string::npos) << nothing;
  const Lineage elsewhere(At("x", "e", 1));
  const BarrierResult vacuous = Barrier(elsewhere, BarrierOptions().OnVacuous(Policy::kRaise));
  ASSERT_NE(vacuous.error(), nullptr);
  EXPECT_EQ(vacuous.error()->message_code, "AP604");
  EXPECT_NE(vacuous.Explain().find("  x: elsewhere (not registered in this process) [AP103]"), std::string::npos);
  const BarrierResult incomplete = Barrier(elsewhere, BarrierOptions().RequireComplete(true));
  ASSERT_NE(incomplete.error(), nullptr);
  EXPECT_EQ(incomplete.error()->message_code, "AP116");
}

// What is missing has a code by its reason.
TEST_F(BarrierCodes, OfGaps) {
  EXPECT_EQ((Gap{"pending", "s", ""}.message_code()), "AP411");
  EXPECT_EQ((Gap{"backlog", "s", ""}.message_code()), "AP517");
  MakeFakeStore("s", {MakeFake("s", Always(kSeen))});
  const Scope scope(std::make_shared<LineageScope>(Lineage(At("s", "e", 1))));
  const PendingPtr write = CurrentScope()->Begin("s");
  const std::string told = Barrier(BarrierOptions().Timeout(20s)).Explain();
  EXPECT_NE(told.find("incomplete: pending s"), std::string::npos) << told;
  EXPECT_NE(told.find("[AP411]"), std::string::npos) << told;
  CurrentScope()->OutcomeUnknown(write);
}

}  // namespace
}  // namespace antipode::testing
