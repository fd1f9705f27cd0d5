// The vectors of recorded histories (spec/vectors/history-*).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "diagnostics/history_order.h"
#include "diagnostics/history_spelling.h"
#include "propagation/message_names.h"
#include "vectors.h"

namespace antipode::history {
namespace {

using testing::Json;

std::string Hex(const Json& vector, const std::string& name) {
  return testing::FromHex(vector[name].get<std::string>());
}

// HIST-34
TEST(HistoryVectors, Key) {
  testing::RunVectors("history-key",
                      [](const Json& vector) { EXPECT_EQ(SpelledKey(Hex(vector, "key_hex")), vector["spelled"]); });
}

// HIST-30
TEST(HistoryVectors, Messages) {
  testing::RunVectors("history-messages", [](const Json& vector) {
    const NamedMessages came = MessagesOf(testing::Read(vector["text"].get<std::string>()));
    EXPECT_EQ(Json(came.messages), vector["messages"]);
    EXPECT_EQ(testing::Canonical(came.lineage), vector["rest"]);
  });
}

// Kind, thread and message of each; the recorder's own messages by when they first appear.
Json Numbered(const std::vector<Json>& lines, const std::set<std::string>& given) {
  std::map<std::string, std::string> names;
  Json found = Json::array();
  for (const Json& line : lines) {
    std::string message = line.value("message", "");
    if (!message.empty() && given.count(message) == 0) {
      message = names.try_emplace(message, "m" + std::to_string(names.size() + 1)).first->second;
    }
    found.push_back({line["kind"], line["scope"], message});
  }
  return found;
}

// HIST-26, HIST-27
TEST(HistoryVectors, Order) {
  testing::RunVectors("history-order", [](const Json& vector) {
    std::vector<Json> lines;
    Order order("process", "id", [&](const std::string& line) { lines.push_back(Json::parse(line)); });
    std::map<std::string, std::shared_ptr<Strand>> strands;
    std::map<std::string, Step> begun;
    std::set<std::string> given;
    const auto strand = [&](const Json& name) {
      auto& found = strands[name.get<std::string>()];
      if (found == nullptr) found = std::make_shared<Strand>(name.get<std::string>(), "");
      return found;
    };
    for (const Json& step : vector["steps"]) {
      if (step.contains("message")) given.insert(step["message"].get<std::string>());
      if (step.contains("begin")) {
        begun.insert_or_assign(step["begin"].get<std::string>(), order.Begin(strand(step["scope"]), std::nullopt));
      } else if (step.contains("end")) {
        std::vector<std::string> kinds = step["as"];
        std::vector<Told> told;
        for (const std::string& kind : kinds) told.push_back({kind, {}});
        order.End(begun.at(step["end"].get<std::string>()), told, step.value("certain", true));
      } else if (step.contains("instant")) {
        order.Instant(strand(step["scope"]), step["instant"].get<std::string>(), std::nullopt,
                      step["message"].get<std::string>());
      } else {
        order.Joined(strand(step["join"]), strand(step["into"]));
      }
    }
    EXPECT_EQ(Numbered(lines, given), vector["lines"]);
  });
}

}  // namespace
}  // namespace antipode::history
