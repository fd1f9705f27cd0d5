// spec/vectors/barrier-*.json and epoch-judge.json, on the real engine.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "antipode/scope.h"
#include "antipode/shim/epochs.h"
#include "antipode/shim/read.h"
#include "diagnostics/following.h"
#include "engine/completions.h"
#include "engine/records_test.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

Ask AnswerOf(const std::string& word) {
  if (word == "visible") return Always(Visibility::Visible());
  if (word == "not_yet" || word == "timed_out") return Always(Visibility::NotYet());
  if (word == "unproven") return Always(Visibility::Unproven("the test says so"));
  for (int kind = 0; kind < static_cast<int>(UnprovenKind::kOther); ++kind) {
    const auto each = static_cast<UnprovenKind>(kind);
    if (word == "unproven-" + std::string(ToString(each))) {
      return Always(Visibility::Unproven("the test says so", each));
    }
  }
  EXPECT_EQ(word, "down");
  return Down();
}

Policy PolicyOf(const std::string& word) {
  for (const Policy each : {Policy::kRaise, Policy::kProceed, Policy::kRedeliver, Policy::kAsTimeout}) {
    if (ToString(each) == word) return each;
  }
  ADD_FAILURE() << "unknown policy " << word;
  return Policy::kRaise;
}

// Registers the stores of a case; whether some server is down.
bool Register(const Json& vector, SettingWords words = {}) {
  words.stores = vector.at("expected").get<std::vector<std::string>>();
  words.on_replica_out = vector.at("on_replica_out") == "fail" ? OnReplicaOut::kFail : OnReplicaOut::kName;
  words.replica_out_after = 50ms;
  if (vector.contains("max_waiters")) words.max_waiters = vector.at("max_waiters").get<std::int64_t>();
  Set(words);
  bool has_down = false;
  const std::vector<std::string> off = vector.value("off", std::vector<std::string>());
  for (const auto& [name, answers] : vector.at("registered").items()) {
    std::vector<FakePtr> servers;
    for (const auto& word : answers) {
      has_down = has_down || word == "down";
      servers.push_back(MakeFake(name + std::to_string(servers.size()), AnswerOf(word)));
    }
    const bool is_off = std::find(off.begin(), off.end(), name) != off.end();
    MakeFakeStore(name, servers, is_off ? std::optional(Mode::kOff) : std::nullopt);
  }
  return has_down;
}

// The scope that holds the lineage and the case's own writes; null where it has none (BAR-56).
class InDoubt {
 public:
  InDoubt(const Json& vector, const Lineage& lineage) {
    if (!vector.contains("pending")) return;
    scope_ = std::make_unique<Scope>(lineage);
    BeginWrites(vector);
  }
  bool any() const { return scope_ != nullptr; }

  static void BeginWrites(const Json& vector) {
    const Json pending = vector.value("pending", Json::object());
    for (const auto& [store, state] : pending.items()) {
      const PendingPtr write = CurrentScope()->Begin(store);
      if (state == "unknown") CurrentScope()->OutcomeUnknown(write);
    }
  }

 private:
  std::unique_ptr<Scope> scope_;
};

TEST(BarrierVectors, Results) {
  RunVectors("barrier-result", [](const Json& vector) {
    const Isolated isolated;
    const bool has_down = Register(vector);
    const Lineage lineage = Read(vector.at("lineage").get<std::string>());
    const bool look = vector.at("look");
    const Json awaited = vector.value("verdicts", Json::object());
    const bool in_vain =
        awaited.empty() || std::find(awaited.begin(), awaited.end(), Json("timed_out")) != awaited.end();
    const bool answered =
        std::any_of(awaited.begin(), awaited.end(), [](const Json& word) { return word != "timed_out"; });
    BarrierOptions options = Proceeding(look ? 0ms : !in_vain && !has_down ? 10s : has_down || answered ? 400ms : 50ms);
    if (!vector.at("ask").is_null()) options.Stores(vector.at("ask").get<std::vector<std::string>>());
    const InDoubt scope(vector, lineage);
    const BarrierResult result = scope.any() ? Barrier(options) : Barrier(lineage, options);
    if (vector.contains("error")) {
      ASSERT_NE(result.error(), nullptr);
      EXPECT_EQ(ErrorName(result.error()->code), vector.at("error").get<std::string>());
      EXPECT_FALSE(result.satisfied());
      return;
    }
    ASSERT_EQ(result.error(), nullptr) << result.Explain();
    Json verdicts = Json::object();
    for (const auto& [name, store] : result.stores()) verdicts[name] = std::string(ToString(store.verdict));
    EXPECT_EQ(verdicts, vector.at("verdicts")) << result.Explain();
    Json kinds = Json::object();
    for (const auto& [name, store] : result.stores()) {
      if (store.kind) kinds[name] = std::string(ToString(*store.kind));
    }
    EXPECT_EQ(kinds, vector.value("kinds", Json::object())) << result.Explain();  // BAR-59
    Json codes = Json::object();
    for (const auto& [name, store] : result.stores()) codes[name] = std::string(store.message_code().text());
    EXPECT_EQ(codes, vector.value("codes", codes)) << result.Explain();  // OBS-15
    std::set<std::string> doubtful;
    for (const Gap& gap : result.gaps()) {
      if (gap.reason == "pending") doubtful.insert(gap.store);
    }
    const Json& asked = vector.at("ask");
    const Json pending = vector.value("pending", Json::object());
    for (const auto& [store, state] : pending.items()) {
      const bool is_asked = asked.is_null() || std::find(asked.begin(), asked.end(), Json(store)) != asked.end();
      EXPECT_EQ(doubtful.count(store), is_asked ? 1U : 0U) << store << state;
    }
    EXPECT_EQ(result.satisfied(), vector.at("satisfied"));
    EXPECT_EQ(result.complete(), vector.at("complete"));
    EXPECT_EQ(result.vacuous(), vector.at("vacuous"));
  });
}

using BarrierRecordVectors = RecordsTest;

// REC-5: in dry-run the record says what the barrier would have said without waiting.
TEST_F(BarrierRecordVectors, Records) {
  RunVectors("barrier-result", [&](const Json& vector) {
    if (vector.contains("error")) return;
    const Isolated isolated;
    SettingWords words = Words(Mode::kDryRun);
    const std::filesystem::path folder = folder_ / vector.at("id").get<std::string>();
    words.records = folder.string();
    Register(vector, words);
    BarrierOptions options;
    if (!vector.at("ask").is_null()) options.Stores(vector.at("ask").get<std::vector<std::string>>());
    const Lineage lineage = Read(vector.at("lineage").get<std::string>());
    {
      const InDoubt scope(vector, lineage);
      EXPECT_TRUE((scope.any() ? Barrier(options) : Barrier(lineage, options)).dry_run());
    }
    Until([] { return following::Unanswered() == 0; });
    Completions::Instance().End();  // what is never seen is given up
    ASSERT_TRUE(records::Flush(20s));
    std::vector<Json> found;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);) {
        if (Json record = Json::parse(line); record.at("kind") == "barrier") found.push_back(std::move(record));
      }
    }
    ASSERT_EQ(found.size(), 1U);
    Json wanted = vector.at("verdicts");
    wanted.update(vector.at("recorded"));
    Json verdicts = Json::object();
    for (const Json& store : found[0].at("stores")) {
      verdicts[store.at("store").get<std::string>()] = store.at("verdict");
      EXPECT_EQ(store.contains("visible_after"), store.at("verdict") == "not_yet") << store;
      EXPECT_TRUE(store.value("visible_after", Json()).is_null()) << store;
    }
    EXPECT_EQ(verdicts, wanted);
    EXPECT_EQ(found[0].at("satisfied"), vector.at("satisfied"));
    EXPECT_EQ(found[0].at("complete"), vector.at("complete"));
  });
}

// What becomes of a read of this store that waits for the scope's entries at a server that answers so (BAR-51,
// SHIM-48).
std::optional<Error> ReadAt(const std::shared_ptr<Server>& server, const std::string& answer, Duration timeout) {
  ReadOptions options;
  options.waits = true;
  const ::antipode::Read read(FindStore(server->store().name()).value(), options);
  if (answer == "past") {
    const Result<void> done = read.RefusePast("of when the test began");
    return done.ok() ? std::nullopt : std::optional(done.error());
  }
  const Result<bool> done = read.Wait(server, timeout);
  if (!done.ok()) return done.error();
  EXPECT_EQ(*done, answer == "visible");
  return std::nullopt;
}

TEST(BarrierVectors, Policies) {
  RunVectors("barrier-policy", [](const Json& vector) {
    const Isolated isolated;
    MakeFakeStore("registered", {MakeFake("r", Always(Visibility::Visible()))});
    std::vector<WriteId> ids;
    Duration deadline = 20s;
    SettingWords words;
    if (vector.contains("read")) {
      words.on_timeout = PolicyOf(vector.at("on_timeout"));
      words.on_unproven = PolicyOf(vector.at("on_unproven"));
    }
    words.stores.emplace();
    for (const auto& word : vector.at("verdicts")) {
      const std::string name = "s" + std::to_string(ids.size());
      ids.push_back(At(name, "e", 1));
      if (word == "expected") words.stores->push_back(name);
      if (word == "past") MakeFakeStore(name, {MakeFake(name, AnswerOf("visible"))});
      if (word != "elsewhere" && word != "expected" && word != "past") {
        MakeFakeStore(name, {MakeFake(name, AnswerOf(word))});
      }
      if (word == "timed_out") deadline = 300ms;
    }
    Set(words);
    const Scope scope(std::make_shared<LineageScope>(Lineage(ids), ScopeKind::kMessage, Delivery{true, {}}));
    if (vector.contains("read")) {
      const auto error = ReadAt(FindStore("s0").value()->ServerAt("s0"), vector.at("verdicts").at(0), deadline);
      ASSERT_EQ(error.has_value(), vector.at("outcome") != "result");
      if (!error) return;
      EXPECT_EQ(ErrorName(error->code), vector.at("outcome").get<std::string>());
      EXPECT_EQ(error->message_code.text(), vector.at("code").get<std::string>());
      ASSERT_NE(error->result, nullptr);
      EXPECT_NE(error->result->store("s0").verdict, Verdict::kVisible);
      return;
    }
    InDoubt::BeginWrites(vector);
    const BarrierResult result = Barrier(BarrierOptions()
                                             .Timeout(deadline)
                                             .OnTimeout(PolicyOf(vector.at("on_timeout")))
                                             .OnUnproven(PolicyOf(vector.at("on_unproven")))
                                             .OnVacuous(PolicyOf(vector.at("on_vacuous")))
                                             .RequireComplete(vector.at("require_complete")));
    if (vector.at("outcome") == "result") {
      EXPECT_EQ(result.error(), nullptr) << result.Explain();
      return;
    }
    ASSERT_NE(result.error(), nullptr) << result.Explain();
    EXPECT_EQ(ErrorName(result.error()->code), vector.at("outcome").get<std::string>());
    if (vector.contains("code")) {
      EXPECT_EQ(result.error()->message_code.text(), vector.at("code").get<std::string>()) << result.Explain();
    }
    EXPECT_FALSE(result.stores().empty());  // BAR-43: the error comes with the result
  });
}

Ends EndsOf(const Json& said) {
  Ends ends;
  for (const auto& [epoch, counter] : said.items()) ends[epoch] = std::stoull(counter.get<std::string>());
  return ends;
}

TEST(BarrierVectors, Epochs) {
  RunVectors("epoch-judge", [](const Json& vector) {
    const Json& server = vector.at("server");
    const Ends marks = EndsOf(server.at("marks"));
    const Ends known = EndsOf(server.value("known", Json::object()));
    const Visibility answer = JudgePosition(
        vector.at("epoch"), std::stoull(vector.at("counter").get<std::string>()),
        {server.at("epoch"), std::stoull(server.at("applied").get<std::string>()), &marks, &known});
    EXPECT_EQ(ToString(answer.verdict), vector.at("answer").get<std::string>());
    EXPECT_EQ(answer.unknown_epoch, vector.at("unknown_epoch"));
    EXPECT_TRUE(answer.verdict == Verdict::kVisible || !answer.reason.empty());
  });
}

}  // namespace
}  // namespace antipode::testing
