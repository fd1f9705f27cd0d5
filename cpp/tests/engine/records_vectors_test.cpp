// The vectors of dry-run records that every language runs, on the embedded store (spec REC).
#include <algorithm>
#include <map>
#include <regex>
#include <thread>
#include <tuple>

#include "antipode/carry.h"
#include "antipode/memory.h"
#include "antipode/messages.h"
#include "antipode/propagation.h"
#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/shim/write.h"
#include "antipode/telemetry.h"
#include "diagnostics/following.h"
#include "diagnostics/repeats.h"
#include "diagnostics/sampling.h"
#include "engine/completions.h"
#include "engine/records_test.h"
#include "store/registry.h"
#include "trust/trust.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

constexpr const char* kSpan = "b7ad6b7169203331";
constexpr const char* kHere = "here";

Versions VersionsOf(const std::string& word) {
  return word == "position" ? Versions::kPosition : word == "object" ? Versions::kObject : Versions::kOpaque;
}

void Do(const MemoryReply& reply) { ASSERT_TRUE(reply.ok()) << reply.message; }

// The stores and scopes of one case.
class FailoverRun {
 public:
  explicit FailoverRun(const Json& vector) {
    for (const auto& [name, versions] : vector.at("stores").items()) {
      MemoryOptions options;
      options.name = name;
      options.versions = VersionsOf(versions);
      MemoryStore& store = stores_.emplace(name, MemoryStore(options)).first->second;
      for (const char* region : {"a", "b"}) clients_.emplace(name + "/" + region, store.Client(region));
    }
  }

  void Step(const Json& step) {
    if (!step.contains("in")) return Act(step);
    const Activation active(scopes_.at(step.at("in")));
    Act(step);
  }

 private:
  void Act(const Json& step) {
    if (step.contains("scope")) return Open(step);
    if (step.contains("end")) {
      open_.erase(step.at("end").get<std::string>());
    } else if (step.contains("answered")) {
      std::map<std::string, std::string> headers;
      open_.at(step.at("answered"))->InjectResponse(HeaderCarrier(headers));
    } else if (step.contains("set")) {
      MemoryClient& client = clients_.at(step.at("store").get<std::string>() + "/a");
      Do(client.Set(step.at("set").get<std::string>(), step.at("value").get<std::string>()));
    } else if (step.contains("get")) {
      Get(step);
    } else if (step.contains("barrier")) {
      BarrierOptions options;
      if (step.contains("stores")) options.Stores(step.at("stores").get<std::vector<std::string>>());
      if (step.contains("reach")) options.Reach(Reach::kReplica);
      if (CurrentSettings()->mode == Mode::kDryRun) {
        EXPECT_TRUE(Barrier(options).dry_run());
      } else if (step.contains("passes")) {
        EXPECT_FALSE(Barrier(options.Timeout(200ms)).satisfied());
      } else {
        const BarrierResult result = Barrier(options.Timeout(10s));
        EXPECT_TRUE(result.satisfied()) << result.Explain();
      }
    } else if (step.contains("freeze")) {
      stores_.at(step.at("freeze")).Freeze("b");
    } else if (step.contains("heal")) {
      stores_.at(step.at("heal")).Heal("b");
    } else if (step.contains("stop")) {
      stores_.at(step.at("stop")).Stop("b");
    } else if (step.contains("lose")) {
      stores_.at(step.at("lose")).Promote("b", 1);
    } else if (step.contains("begin")) {
      Begin(step);
    } else if (step.contains("abandon")) {
      const auto write = writes_.find(step.at("abandon"));
      write->second->Abandon();
      writes_.erase(write);
    } else if (step.contains("serialize")) {
      texts_[step.at("serialize")] = Serialize().value();
    } else if (step.contains("incomplete")) {
      CurrentScope()->MarkIncomplete(step.at("reason").get<std::string>(), {step.at("incomplete").get<std::string>()});
    } else if (step.contains("call")) {
      std::map<std::string, std::string> headers;
      EXPECT_EQ(InjectRequest(HeaderCarrier(headers), step.at("call").get<std::string>()), std::nullopt);
    } else if (step.contains("wait")) {
      Until([] { return following::Unanswered() == 0; });
      if (step.at("wait") == "followed") Until([] { return following::Followed() == 0 && Repeats::Instance().Idle(); });
    } else {
      ASSERT_TRUE(step.contains("exit")) << "no such step: " << step;
      Completions::Instance().End();
      Repeats::Instance().End();
      records::End();
    }
  }

  void Open(const Json& step) {
    const std::string name = step.at("scope");
    const std::string kind = step.at("as");
    if (kind == "root") {
      open_.emplace(name, std::make_unique<Scope>());
    } else if (kind == "detached") {
      open_.emplace(name, std::make_unique<Scope>(DetachedScope()));
    } else if (kind == "request") {
      const std::map<std::string, std::string> headers;
      open_.emplace(name, std::make_unique<Scope>(ExtractRequest(HeaderCarrier(headers))));
    } else {
      ASSERT_EQ(kind, "message");
      MessageOptions options;
      options.queue = step.value("queue", "");
      const std::string text =
          step.contains("carries") ? texts_.at(step.at("carries")) : step.at("text").get<std::string>();
      open_.emplace(name, std::make_unique<Scope>(MessageScope(text, options)));
    }
    scopes_[name] = CurrentScope();
  }

  void Get(const Json& step) {
    std::optional<Reading> reading;
    if (step.contains("after")) {
      ReadingOptions options;
      options.after = Read(texts_.at(step.at("after")));
      reading.emplace(options);
    }
    MemoryClient& client = clients_.at(step.at("store").get<std::string>() + "/" + step.at("at").get<std::string>());
    const MemoryReply reply = client.Get(step.at("get").get<std::string>());
    Do(reply);
    EXPECT_EQ(reply.value ? Json(*reply.value) : Json(), step.at("value")) << step;
  }

  void Begin(const Json& step) {
    const std::shared_ptr<Store> store = CurrentRegistry()->Get(step.at("store").get<std::string>());
    const auto begin = [&] { writes_[step.at("begin")].reset(new Writing(store, "private-key")); };
    if (!step.contains("beside")) return begin();
    std::thread(Carry(begin)).join();
  }

  std::map<std::string, MemoryStore> stores_;
  std::map<std::string, MemoryClient> clients_;
  std::map<std::string, ScopePtr> scopes_;
  std::map<std::string, std::unique_ptr<Scope>> open_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::unique_ptr<Writing>> writes_;
};

void PlainTime(Json& timed) {
  if (!timed.contains("visible_after") || timed.at("visible_after").is_null()) return;
  EXPECT_GE(timed.at("visible_after").get<double>(), 0);
  EXPECT_LT(timed.at("visible_after").get<double>(), 60);
  timed["visible_after"] = "seconds";
}

// By what, store, and whether there is a site: several sites of one test are one.
Json PlainCounts(const Json& counts) {
  std::map<std::tuple<std::string, std::string, bool>, int> sums;
  for (const Json& count : counts) {
    sums[{count.at("what"), count.value("store", ""), count.contains("site")}] += count.at("count").get<int>();
  }
  Json plain = Json::array();
  for (const auto& [key, number] : sums) {
    const auto& [what, store, sited] = key;
    Json count = {{"what", what}, {"count", number}};
    if (!store.empty()) count["store"] = store;
    if (sited) count["site"] = kHere;
    plain.push_back(count);
  }
  return plain;
}

void TakeOut(Json& record, const std::string& name, const std::string& pattern) {
  ASSERT_TRUE(record.contains(name)) << name << " in " << record;
  EXPECT_TRUE(std::regex_match(record.at(name).get<std::string>(), std::regex(pattern))) << record;
  record.erase(name);
}

// A record as the vectors have it: without what differs from run to run, of which it only says that it is there.
Json Plain(Json record) {
  EXPECT_EQ(record.at("record"), 1);
  EXPECT_NEAR(record.at("time").get<double>(), UnixTime(), 600);
  EXPECT_TRUE(record.at("service").is_string());
  for (const char* name : {"record", "time", "service"}) record.erase(name);
  TakeOut(record, "region", "b");
  TakeOut(record, "process", ".+:[0-9]+:[0-9]+");
  if (record.contains("trace_id")) TakeOut(record, "span_id", kSpan);
  for (const char* name : {"site", "barrier", "written_at"}) {
    if (!record.contains(name)) continue;
    TakeOut(record, name, "engine/records_vectors_test\\.cpp:[1-9][0-9]*");
    record[name] = kHere;
  }
  if (record.contains("origin")) {
    Json& origin = record["origin"];
    EXPECT_EQ(origin.value("opened_by", "").empty(), origin.at("scope") == "task") << record;
    origin.erase("opened_by");
  }
  PlainTime(record);
  if (record.contains("stores")) {
    Json& stores = record["stores"];
    for (Json& store : stores) PlainTime(store);
    std::sort(stores.begin(), stores.end(), [](const Json& a, const Json& b) { return a.at("store") < b.at("store"); });
  }
  if (record.contains("wanted")) {
    const Json wanted = record.at("wanted");
    record["wanted"] = "position";
    const Json seen = record.value("seen", Json());
    const auto counter = [](const Json& position) { return std::stoull(position.at("counter").get<std::string>()); };
    if (!seen.is_null() && seen.at("epoch") == wanted.at("epoch") && counter(seen) < counter(wanted)) {
      record["seen"] = "before";
    }
  }
  if (record.at("kind") == "summary") {
    EXPECT_GT(record.at("since").get<double>(), 0);
    record.erase("since");
    record["counts"] = PlainCounts(record.at("counts"));
  }
  return record;
}

using RecordsVectorsTest = RecordsTest;

// REC-1, REC-3 to REC-8, REC-11 to REC-20, REC-26.
TEST_F(RecordsVectorsTest, Lines) {
  RunVectors("records", [&](const Json& vector) {
    const Isolated isolated;
    const std::filesystem::path folder = folder_ / vector.at("id").get<std::string>();
    const Json settings = vector.value("settings", Json::object());
    SettingWords words = Words(settings.value("mode", "") == "enforce" ? Mode::kEnforce : Mode::kDryRun);
    words.records = folder.string();
    words.sample = settings.value("sample", 1.0);
    if (settings.contains("repeat_reads")) words.repeat_reads = settings.at("repeat_reads").get<bool>();
    if (settings.contains("stores")) words.stores = settings.at("stores").get<std::vector<std::string>>();
    if (settings.contains("replica_out_after")) {
      words.replica_out_after = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(settings.at("replica_out_after").get<double>()));
    }
    Set(words);
    if (vector.contains("trace_id")) SetTelemetrySink(std::make_shared<Traced>(vector.at("trace_id"), kSpan));
    FailoverRun played(vector);
    for (const Json& step : vector.at("steps")) played.Step(step);
    SetTelemetrySink(nullptr);
    EXPECT_TRUE(records::Flush(20s));
    std::vector<Json> found;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(line.find("private"), std::string::npos) << line;  // REC-8
        found.push_back(Plain(Json::parse(line)));
      }
    }
    std::vector<Json> wanted;
    for (Json line : vector.at("lines")) {
      if (line.contains("counts")) line["counts"] = PlainCounts(line.at("counts"));
      wanted.push_back(line);
    }
    std::sort(found.begin(), found.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(found, wanted) << Json(found).dump(1) << "\n" << Json(wanted).dump(1);
  });
}

// REC-12.
TEST(RecordsVectors, Sample) {
  RunVectors("records-sample", [](const Json& vector) {
    const Isolated isolated;
    SettingWords words;
    words.sample = vector.at("sample").get<double>();
    Set(words);
    EXPECT_EQ(IsSampled(SpanName{vector.at("trace_id"), kSpan}), vector.at("sampled").get<bool>());
  });
}

}  // namespace
}  // namespace antipode::testing
