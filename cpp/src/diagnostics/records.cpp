#include "diagnostics/records.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <mutex>
#include <set>
#include <utility>

#include "base/fork.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "diagnostics/counts.h"
#include "diagnostics/following.h"
#include "diagnostics/held_records.h"
#include "diagnostics/measured.h"
#include "diagnostics/record.h"
#include "diagnostics/record_writer.h"
#include "diagnostics/repeats.h"
#include "diagnostics/sampling.h"
#include "diagnostics/telemetry.h"
#include "engine/judgement.h"
#include "scope/scope_impl.h"
#include "store/registry.h"
#include "trust/trust.h"

namespace antipode {
namespace {

// What is written once a minute: records that were held back, and what was counted since.
struct SummaryWriter {
  SummaryWriter() {
    OnForkInChild([this] { Forget(); });
  }
  void Forget() {
    held = HeldRecords();
    counted.clear();
    since = UnixTime();
  }
  std::mutex mutex;
  HeldRecords held;
  counts::Numbers counted;
  double since = UnixTime();
};

SummaryWriter& TheSumming() { return ForkSafe<SummaryWriter, LockOrder::kOuter>(); }

// What is due, or all of it.
std::vector<Record> Due(bool all) {
  const std::lock_guard<std::mutex> lock(TheSumming().mutex);
  std::vector<Record> due = TheSumming().held.Due(Clock::now(), all);
  counts::Numbers now = counts::Now();
  const std::vector<JsonObject> counted = counts::Between(TheSumming().counted, now);
  if (counted.empty()) return due;
  const Moment moment = {UnixTime(), std::nullopt};
  Record summary("summary", moment);
  summary.Number("since", TheSumming().since).Number("sample", InForce()->sample).Objects("counts", counted);
  due.push_back(std::move(summary));
  TheSumming().counted = std::move(now);
  TheSumming().since = moment.time;
  return due;
}

std::vector<std::string> DueLines() {
  std::vector<std::string> lines;
  for (const Record& record : Due(false)) lines.push_back(record.Written());
  return lines;
}

// What a barrier would have found of one store; a server that does not answer is left out, as by a barrier.
Verdict VerdictOf(const StoreRequest& asked, const std::vector<const following::Write*>& writes, bool left_out) {
  if (std::any_of(writes.begin(), writes.end(), [](const auto* write) { return write->Late(); })) {
    return Verdict::kNotYet;
  }
  if (left_out && FailsWithoutReplica(asked)) return Verdict::kUnproven;
  const bool seen = std::all_of(writes.begin(), writes.end(), [](const auto* write) { return write->ThereAtOnce(); });
  return seen && !writes.empty() ? Verdict::kVisible : Verdict::kUnproven;
}

// One store of a barrier record; whether it was visible at the first look.
bool AddStore(std::vector<JsonObject>& stores, const StoreRequest& asked, const following::Writes& writes,
              const std::string& site) {
  std::vector<const following::Write*> judged;
  std::set<std::string> servers;
  bool left_out = false;
  for (const following::Write& write : writes) {
    if (&write.server->store() != asked.store.get()) continue;
    servers.insert(write.server->address());
    left_out = left_out || write.left_out;
    if (!write.left_out) judged.push_back(&write);
  }
  const Verdict verdict = VerdictOf(asked, judged, left_out);
  JsonObject store;
  store.Text("store", asked.store->name())
      .Text("store_kind", asked.store->kind())
      .Text("verdict", ToString(verdict))
      .Texts("servers", {servers.begin(), servers.end()});
  if (verdict == Verdict::kNotYet) {
    telemetry::Finding("behind", site);
    if (const auto after = following::VisibleAfter(judged)) {
      store.Number("visible_after", *after);
    } else {
      store.Null("visible_after");
    }
  }
  stores.push_back(store);
  return verdict == Verdict::kVisible;
}

// What a barrier would have said without waiting (REC-5).
void PutBarrier(Record record, const Plan& plan, const std::vector<StoreRequest>& asked, const following::Writes& writes,
                bool unjudged) {
  std::vector<JsonObject> stores;
  bool seen = plan.unregistered.empty();
  for (const StoreRequest& each : asked) seen = AddStore(stores, each, writes, plan.site) && seen;
  for (const auto& each : plan.unregistered) {  // open branches, too: nobody knows what is to come
    stores.push_back(JsonObject().Text("store", each.first).Text("verdict", ToString(Verdict::kUnproven)));
  }
  for (const std::string& name : plan.elsewhere) {
    stores.push_back(JsonObject().Text("store", name).Text("verdict", ToString(Verdict::kElsewhere)));
  }
  const bool left_out = std::any_of(writes.begin(), writes.end(), [](const auto& write) { return write.left_out; });
  record.Flag("satisfied", seen).Flag("complete", seen && !unjudged && !left_out).Objects("stores", stores).Put();
}

std::shared_ptr<const BarrierObservation> LooksOf(const following::Wanted& wanted, const std::string& site) {
  auto looks = std::make_shared<BarrierObservation>();
  looks->site = site;
  for (const auto& [server, write_id] : wanted) looks->asked[server->address()].push_back(write_id);
  return looks;
}

// A kind of which each request could make one: one at once, then one a minute (REC-17).
void PutOften(const Record& record, std::string key, std::initializer_list<std::string_view> where) {
  for (const std::string_view each : where) key.append(1, ' ').append(each);
  record.Tell();
  records::Start();
  {
    const std::lock_guard<std::mutex> lock(TheSumming().mutex);
    if (!TheSumming().held.Admit(key, record, Clock::now())) return;
  }
  record.Put();
}

// Writes records of what the lower rooms say, where that is the mode, and counts for summaries (REC-16).
class DryRun final : public Observer {
 public:
  void ScopeOpened(ScopeKind kind) override {
    if (kind == ScopeKind::kRequest) counts::AddRequest();
    if (kind == ScopeKind::kMessage) counts::AddMessage();
  }

  void WriteBegun(std::string_view store) override { counts::Add("writes", "", std::string(store)); }

  void LineageIncomplete(const IncompleteLineage& lineage) override {
    if (lineage.is_recorded && IsOn()) PutIncomplete(lineage);
  }

  void IncompleteLineageReceived(std::string_view store, const LineageScope& scope) override {
    PutIncomplete({"received", store, &scope});
  }

  void LineagePassedOn(LineageScope& scope, std::string_view target, std::string_view site) override {
    const Moment moment = Moment::Now();
    if (!scope.impl().Brought() || !moment.span || !IsSampled(moment.span)) return;
    if (!scope.impl().PassedAt(std::string(site))) return;
    Record("passed_on", moment).Text("site", site).CameFrom(Origin::Of(&scope)).Text("target", target).Put();
  }

  void LineageLeftEarly(std::string_view site, const std::vector<PendingPtr>& uncommitted) override {
    if (!IsOn()) return;
    for (const PendingPtr& write : uncommitted) RecordOf("published_before_commit", site, *write).Tell().Put();
  }

  // No violation (SCOPE-18).
  void WriteConcurrent(std::string_view site, const PendingWrite& write) override {
    PutOften(RecordOf("concurrent_write", site, write), "concurrent_write", {write.store(), site});
  }

  void WriteLost(std::string_view reason, std::string_view store, std::string_view site) override {
    if (!IsOn()) return;
    if (reason == "orphan") {
      Record("orphan").Text("site", site).Text("store", store).Tell().Put();
    } else {
      PutLate(reason, store, site);
    }
  }

  void WriteLate(std::string_view store, std::string_view site) override {
    if (IsOn()) PutLate("sent", store, site);
  }

  std::shared_ptr<WaitGroup> BarrierRecorded(const Plan& plan, const std::vector<StoreRequest>& asked) override {
    records::Start();
    counts::Add("barriers", telemetry::Bounded(plan.site), "");
    const Moment moment = Moment::Now();
    const Origin origin = Origin::Of(plan.scope.get());
    if (plan.Vacuous()) {
      Record("vacuous", moment)
          .Text("site", plan.site)
          .CameFrom(origin)
          .Texts("lineage_stores", plan.elsewhere)
          .Texts("registered", NamesOf(CurrentRegistry()->All()))
          .Tell()
          .Put();
    }
    Record record("barrier", moment);
    record.Text("site", plan.site).CameFrom(origin).Text("reach", ToString(plan.reach)).Tell();
    following::Wanted wanted;
    for (const StoreRequest& each : asked) {
      for (const auto& server : each.servers) {
        for (const WriteId& write_id : each.ids) wanted.emplace_back(server, write_id);
      }
    }
    const bool unjudged = plan.LeavesUnjudged();  // by now: the scope goes on
    auto group = following::Follow(wanted, [record, plan, asked, unjudged](const following::Writes& writes) {
      PutBarrier(record, plan, asked, writes, unjudged);
    });
    if (group) {
      if (plan.scope) BarrierObservation::Keep(plan.scope, LooksOf(wanted, plan.site));
      return group;
    }
    // Bounded: this one is not followed, and its record says that nobody knows.
    PutBarrier(std::move(record), plan, asked, {}, unjudged);
    return nullptr;
  }

  void BarrierEnforced() override {
    counts::AddEnforced();
    // Whether it was named is looked up once for the settings in force.
    static std::atomic<std::uint64_t> looked_up{~std::uint64_t{0}};
    const std::uint64_t now = SettingsGeneration();
    if (looked_up.exchange(now, std::memory_order_relaxed) != now && IsSaid("records")) records::Start();
  }

  void EngineStopped() override {
    Repeats::Instance().End();  // what is not read again is recorded without
    records::End();
    RecordWriter::Instance().End();
  }

 private:
  static bool IsOn() { return CurrentSettings()->mode == Mode::kDryRun; }

  static Record RecordOf(std::string_view kind, std::string_view site, const PendingWrite& write) {
    Record record(kind);
    record.Text("site", site).Text("store", write.store()).Text("target", "");
    if (!write.site().empty()) record.Text("written_at", write.site());
    return record;
  }

  static void PutLate(std::string_view reason, std::string_view store, std::string_view site) {
    PutOften(Record("late_write").Text("site", site).Text("store", store).Text("reason", reason), "late_write",
             {reason, store, site});
  }

  static void PutIncomplete(const IncompleteLineage& lineage) {
    Record record("incomplete");
    if (!lineage.site.empty()) record.Text("site", lineage.site);
    if (!lineage.store.empty()) record.Text("store", lineage.store);
    record.Text("reason", lineage.reason).CameFrom(Origin::Of(lineage.scope));
    PutOften(record, "incomplete", {lineage.reason, lineage.store, lineage.site});
  }
};

DryRun observer;

}  // namespace

namespace records {

void Listen() noexcept { AddObserver(observer); }

void Start() { RecordWriter::Instance().Start(DueLines); }

bool Flush(Duration timeout) { return RecordWriter::Instance().Flush(timeout); }

void End() {
  if (!RecordWriter::Instance().used()) return;
  for (const Record& record : Due(true)) record.Put();
}

void Forget() {
  counts::Reset();
  const std::lock_guard<std::mutex> lock(TheSumming().mutex);
  TheSumming().Forget();
}

}  // namespace records

}  // namespace antipode
