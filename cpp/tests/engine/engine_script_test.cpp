// spec/vectors/engine-script.json: the engine is real, the servers answer when the script says so. All waits are for
// conditions.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "antipode/scope.h"
#include "engine/scripted.h"

namespace antipode::testing {
namespace {

using Strings = std::vector<std::string>;

// One call, in a thread of its own; or as a task, which can be cancelled.
class Call {
 public:
  Call(const Lineage& lineage, const Json& step) {
    BarrierOptions options = Proceeding(std::chrono::milliseconds(step.value("timeout_ms", 60'000)));
    options.RequireComplete(step.value("require_complete", false));
    for (const Reach each : {Reach::kSession, Reach::kReplica, Reach::kRegion}) {
      if (step.value("reach", "") == ToString(each)) options.Reach(each);
    }
    const auto promise = std::make_shared<std::promise<BarrierResult>>();
    result_ = promise->get_future();
    if (step.value("task", false)) {
      waiter_ = BarrierAsync(lineage, options, [promise](BarrierResult result) { promise->set_value(result); });
    } else {
      thread_ = std::thread([=] { promise->set_value(Barrier(lineage, options)); });
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (thread_.joinable()) thread_.join();
  }

  bool IsOver(Duration patience = 0ms) const { return result_.wait_for(patience) == std::future_status::ready; }
  void Cancel() { waiter_.Cancel(); }
  BarrierResult Take() { return result_.get(); }

 private:
  std::future<BarrierResult> result_;
  Waiter waiter_;
  std::thread thread_;
};

// What lists the servers of a store: what it answers (nothing: it fails), and how often it was asked.
struct Listing {
  std::mutex mutex;
  std::optional<Targets> targets;
  int asked = 0;

  Result<Targets> Ask() {
    const std::lock_guard<std::mutex> lock(mutex);
    ++asked;
    if (!targets) return Error{ErrorCode::kConfiguration, "AP207", "the list cannot be had"};
    return *targets;
  }
  int Change(std::optional<Targets> to) {
    const std::lock_guard<std::mutex> lock(mutex);
    targets = std::move(to);
    return asked;
  }
  bool WasAskedAfter(int before) {
    const std::lock_guard<std::mutex> lock(mutex);
    return asked > before;
  }
};

SettingWords WordsOf(const Json& said) {
  static const std::map<std::string, std::optional<Duration> SettingWords::*> durations = {
      {"free_path_ttl_ms", &SettingWords::free_path_ttl},
      {"replica_out_after_ms", &SettingWords::replica_out_after},
      {"reconnect_ms", &SettingWords::reconnect},
      {"left_server_ms", &SettingWords::left_server},
      {"poll_ms", &SettingWords::poll}};
  static const std::map<std::string, std::optional<std::int64_t> SettingWords::*> numbers = {
      {"max_tasks", &SettingWords::max_tasks}, {"max_waiters", &SettingWords::max_waiters}};
  SettingWords words;
  words.free_path_ttl = words.reconnect = 1h;
  words.replica_out_after = 60s;
  words.poll = 5ms;
  for (const auto& [name, value] : said.items()) {
    if (const auto duration = durations.find(name); duration != durations.end()) {
      words.*duration->second = std::chrono::milliseconds(value.get<std::int64_t>());
    } else if (const auto number = numbers.find(name); number != numbers.end()) {
      words.*number->second = value.get<std::int64_t>();
    } else {
      EXPECT_EQ(name, "on_replica_out") << "this runner does not set it";
      words.on_replica_out = value == "fail" ? OnReplicaOut::kFail : OnReplicaOut::kName;
    }
  }
  return words;
}

// What a result says, by the fields of a step.
Json Found(const BarrierResult& result) {
  Json found = {{"satisfied", result.satisfied()}, {"complete", result.complete()}, {"overloaded", false}};
  found["verdicts"] = found["kinds"] = Json::object();
  Strings left_out;
  Strings servers;
  for (const auto& [name, store] : result.stores()) {
    found["verdicts"][name] = std::string(ToString(store.verdict));
    if (store.kind) found["kinds"][name] = std::string(ToString(*store.kind));
    if (store.overloaded) found["overloaded"] = true;
    for (const std::string& address : store.LeftOut()) left_out.push_back(address);
    for (const ServerResult& server : store.servers) servers.push_back(server.address);
  }
  std::sort(left_out.begin(), left_out.end());
  std::sort(servers.begin(), servers.end());
  found["left_out"] = left_out;
  found["servers"] = servers;
  return found;
}

// A call that is cancelled completes as timed out, with the reason (BAR-32).
std::string ErrorOf(const BarrierResult& result) {
  if (result.error() != nullptr) return std::string(ErrorName(result.error()->code));
  for (const auto& [name, store] : result.stores()) {
    if (!result.satisfied() && store.reason.find("cancelled") != std::string::npos) return "cancelled";
  }
  return {};
}

class Script {
 public:
  explicit Script(const Json& vector) : stores_said_(vector.at("stores")), steps_(vector.at("steps")) {
    const auto names = std::make_shared<WriteNames>();
    for (const auto& [name, entry] : vector.at("writes").items()) names->emplace_back(GoodEntryOf(entry), name);
    names_ = names;
    Set(WordsOf(vector.value("settings", Json::object())));
    for (const auto& [name, said] : stores_said_.items()) Register(name, said);
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script() {
    for (const ScriptedPtr& server : servers_) server->Open();
  }

  void Run() {
    const Scope scope(LineageOfAll());
    int number = 0;
    for (const Json& step : steps_) {
      SCOPED_TRACE("step " + std::to_string(number++) + ", " + step.dump());
      ASSERT_NO_FATAL_FAILURE(Do(step));
    }
  }

 private:
  void Register(const std::string& name, const Json& said) {
    StoreOptions options(name);
    if (said.value("discovers", false)) {
      const auto listing = listings_[name] = std::make_shared<Listing>();
      listing->targets = TargetsOf(said.at("servers"));
      options.ReplicasFrom([listing] { return listing->Ask(); });
    } else {
      options.ReplicaTargets(TargetsOf(said.at("servers")));
    }
    stores_[name] = JoinStore(ScriptedShim::TypeOf(said), options).value();
    for (const std::string& own : said.value("own", Strings())) stores_[name]->UseServer(options, std::any(NamedServers(own)));
  }

  ScriptedPtr NamedServers(const std::string& name) {
    for (const ScriptedPtr& server : servers_) {
      if (server->name == name) return server;
    }
    return servers_.emplace_back(std::make_shared<ScriptedServer>(name, names_));
  }

  Targets TargetsOf(const Strings& names) {
    Targets targets;
    for (const std::string& name : names) targets.emplace_back(NamedServers(name));
    return targets;
  }

  Lineage LineageOfAll() const {
    std::vector<WriteId> ids;
    for (const auto& [id, name] : *names_) ids.push_back(id);
    return Lineage(ids);
  }

  Lineage LineageOfThese(const Strings& writes) const {
    std::vector<WriteId> ids;
    for (const auto& [id, name] : *names_) {
      if (std::find(writes.begin(), writes.end(), name) != writes.end()) ids.push_back(id);
    }
    return Lineage(ids);
  }

  // The engine's own of a server; null where it has not joined.
  std::shared_ptr<Server> EnginesOf(const std::string& name) const {
    for (const auto& [store, joined] : stores_) {
      if (auto server = joined->ServerAt(name)) return server;
    }
    return nullptr;
  }

  std::vector<ScriptedPtr> At(const Json& step) {
    return step.contains("at") ? std::vector{NamedServers(step.at("at"))} : servers_;
  }

  void Do(const Json& step) {
    const std::string& what = step.at("do").get_ref<const std::string&>();
    if (what == "elapse") return Elapse(std::chrono::milliseconds(step.at("ms").get<int>()));
    if (what == "wrap") return Wrap(step.at("store"), step.at("at"));
    if (what == "discovery") return Discover(step.at("store"), step.at("names"));
    if (what == "free") return LookFree(step.at("is"));
    if (step.contains("call")) return DoCall(what, step);
    for (const ScriptedPtr& server : At(step)) ASSERT_NO_FATAL_FAILURE(DoAt(*server, what, step));
  }

  void DoAt(ScriptedServer& server, const std::string& what, const Json& step) {
    if (what == "hold") return server.Hold();
    if (what == "open") return server.Open();
    if (what == "show") return server.Show(Reply::Of(step));
    if (what == "asked") return Until([&] { return server.IsAskedFor(step.value("for", Strings())); }, 60s);
    if (what == "push") return Until([&] { return server.Push(); }, 60s);
    if (what == "awaited") return AwaitWaiting(server.name, step.at("is"));
    if (what == "replaced") return CallOnThread([&] { EnginesOf(server.name)->Reset(); });
    ASSERT_EQ(what, "answer") << "a step that this runner does not know";
    ASSERT_NO_FATAL_FAILURE(Until([&] { return server.IsAskedFor({}); }, 60s));
    server.Answer(Reply::Of(step), step.value("once", false));
  }

  void AwaitWaiting(const std::string& name, bool is) {
    const auto as_said = [&] {
      const auto server = EnginesOf(name);
      return server && server->Awaited() == is;
    };
    Until(as_said, 60s);
  }

  static void Elapse(Duration duration) {
    const TimePoint end = Clock::now() + duration;
    Until([&] { return Clock::now() >= end; }, 60s);
  }

  void Wrap(const std::string& store, const std::string& server) {
    const auto type = ScriptedShim::TypeOf(stores_said_.at(store));
    ASSERT_TRUE(JoinStore(type, StoreOptions(store).ReplicaTargets({std::any(NamedServers(server))})).ok());
  }

  void Discover(const std::string& name, const Json& names) {
    const auto store = stores_.at(name);
    const auto listing = listings_.at(name);
    const Strings now = names.is_null() ? Strings() : names.get<Strings>();
    const int before = listing->Change(names.is_null() ? std::nullopt : std::optional(TargetsOf(now)));
    const auto listed = [&] {  // who reads them has it asked
      const Strings found = store->replicas();
      return std::set(found.begin(), found.end());
    };
    ASSERT_NO_FATAL_FAILURE(Until([&] { return !listed().empty() && listing->WasAskedAfter(before); }, 60s));
    if (!now.empty()) Until([&] { return listed() == std::set(now.begin(), now.end()); }, 60s);
  }

  void LookFree(bool is) {
    for (const ScriptedPtr& server : servers_) server->HoldAll(true);
    const bool passes = Barrier(Proceeding(0ms)).satisfied();
    for (const ScriptedPtr& server : servers_) server->HoldAll(false);
    ASSERT_EQ(passes, is);
  }

  void DoCall(const std::string& what, const Json& step) {
    const std::string name = step.at("call");
    if (what == "barrier") {
      const Lineage lineage = step.contains("writes") ? LineageOfThese(step.at("writes")) : LineageOfAll();
      calls_[name] = std::make_unique<Call>(lineage, step);
      return;
    }
    Call& call = *calls_.at(name);
    if (what == "cancel") return call.Cancel();
    if (what == "waits") {
      ASSERT_FALSE(call.IsOver());
      return;
    }
    ASSERT_EQ(what, "outcome") << "a step that this runner does not know";
    ASSERT_TRUE(call.IsOver(120s)) << "it is not over";
    const BarrierResult result = call.Take();
    ASSERT_EQ(ErrorOf(result), step.value("error", "")) << result.Explain();
    if (step.contains("error")) return;
    const Json found = Found(result);
    Json wanted = {{"kinds", Json::object()}, {"left_out", Json::array()}};
    wanted.update(step);
    for (const auto& [field, value] : found.items()) {
      ASSERT_EQ(value, wanted.value(field, value)) << field << ": " << result.Explain();
    }
  }

  const Json stores_said_;
  const Json steps_;
  std::shared_ptr<const WriteNames> names_;
  std::map<std::string, std::shared_ptr<Store>> stores_;
  std::map<std::string, std::shared_ptr<Listing>> listings_;
  std::map<std::string, std::unique_ptr<Call>> calls_;  // ended behind the servers: what is held goes first
  std::vector<ScriptedPtr> servers_;
};

class EngineScript : public EngineTest, public ::testing::WithParamInterface<std::string> {};

Strings Ids() {
  Strings ids;
  for (const Json& each : CasesOf("engine-script")) ids.push_back(each.at("id"));
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Each, EngineScript, ::testing::ValuesIn(Ids()), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EngineScript, Runs) {
  for (const Json& each : CasesOf("engine-script")) {
    if (each.at("id") == GetParam()) Script(each).Run();
  }
}

}  // namespace
}  // namespace antipode::testing
