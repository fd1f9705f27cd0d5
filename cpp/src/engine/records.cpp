#include "engine/records.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "antipode/logs.h"
#include "engine/counts.h"
#include "engine/following.h"
#include "engine/held_records.h"
#include "engine/in_force.h"
#include "engine/judgement.h"
#include "engine/record.h"
#include "engine/record_writer.h"
#include "engine/registry.h"
#include "engine/sampling.h"
#include "findings.h"
#include "fork.h"
#include "measured.h"
#include "telemetry.h"
#include "trust.h"

namespace antipode {
namespace {

// What is written once a minute: records that were held back, and what was counted since.
struct Summing {
  Summing() {
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

Summing& TheSumming() { return ForkSafe<Summing, LockOrder::kOuter>(); }

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
Verdict VerdictOf(const Asked& asked, const std::vector<const following::Write*>& writes, bool left_out) {
  if (std::any_of(writes.begin(), writes.end(), [](const auto* write) { return write->Late(); })) {
    return Verdict::kNotYet;
  }
  if (left_out && FailsWithoutReplica(asked)) return Verdict::kUnproven;
  const bool seen = std::all_of(writes.begin(), writes.end(), [](const auto* write) { return write->ThereAtOnce(); });
  return seen && !writes.empty() ? Verdict::kVisible : Verdict::kUnproven;
}

// One store of a barrier record; whether it was visible at the first look.
bool AddStore(std::vector<JsonObject>& stores, const Asked& asked, const following::Writes& writes,
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
void PutBarrier(Record record, const Plan& plan, const std::vector<Asked>& asked, const following::Writes& writes,
                bool unjudged) {
  std::vector<JsonObject> stores;
  bool seen = plan.expected.empty();
  for (const Asked& each : asked) seen = AddStore(stores, each, writes, plan.site) && seen;
  for (const std::string& name : plan.expected) {  // open branches, too: nobody knows what is to come
    stores.push_back(JsonObject().Text("store", name).Text("verdict", ToString(Verdict::kUnproven)));
  }
  for (const std::string& name : plan.elsewhere) {
    stores.push_back(JsonObject().Text("store", name).Text("verdict", ToString(Verdict::kElsewhere)));
  }
  const bool left_out = std::any_of(writes.begin(), writes.end(), [](const auto& write) { return write.left_out; });
  record.Flag("satisfied", seen).Flag("complete", seen && !unjudged && !left_out).Objects("stores", stores).Put();
}

std::shared_ptr<const BarrierLooks> LooksOf(const following::Wanted& wanted, const std::string& site) {
  auto looks = std::make_shared<BarrierLooks>();
  looks->site = site;
  for (const auto& [server, write_id] : wanted) looks->asked[server->address()].push_back(write_id);
  return looks;
}

// A kind of which each request could make one: one at once, then one a minute (REC-17).
void PutOften(const Record& record, const std::string& key) {
  record.Tell();
  records::Start();
  {
    const std::lock_guard<std::mutex> lock(TheSumming().mutex);
    if (!TheSumming().held.Admit(key, record, Clock::now())) return;
  }
  record.Put();
}

}  // namespace

namespace records {

void Start() { RecordWriter::Instance().Start(DueLines); }

void CountEnforced() {
  counts::AddEnforced();
  // Whether it was named is looked up once for the settings in force.
  static std::atomic<std::uint64_t> looked_up{~std::uint64_t{0}};
  const std::uint64_t now = SettingsGeneration();
  if (looked_up.exchange(now, std::memory_order_relaxed) != now && IsSaid("records")) Start();
}

std::shared_ptr<Group> Follow(const Plan& plan, const std::vector<Asked>& asked) {
  Start();
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
  for (const Asked& each : asked) {
    for (const auto& server : each.servers) {
      for (const WriteId& write_id : each.ids) wanted.emplace_back(server, write_id);
    }
  }
  const bool unjudged = plan.LeavesUnjudged();  // by now: the scope goes on
  auto group = following::Follow(wanted, [record, plan, asked, unjudged](const following::Writes& writes) {
    PutBarrier(record, plan, asked, writes, unjudged);
  });
  if (group) {
    if (plan.scope) BarrierLooks::Keep(plan.scope, LooksOf(wanted, plan.site));
    return group;
  }
  // Bounded: this one is not followed, and its record says that nobody knows.
  PutBarrier(std::move(record), plan, asked, {}, unjudged);
  return std::make_shared<Group>(Duration::zero());
}

StoreResults JudgeNow(const Plan& plan, const Group& group) {
  Group now(Duration::zero());  // what is followed changes meanwhile: each need is copied under its server's lock
  for (const Need& need : group.needs) need.server->CopyTo(now.Add(need.write_id, need.server), need);
  return JudgeStores(plan, now, Duration::zero(), true);
}

void Try(const std::function<void()>& what) noexcept {
  try {
    what();
  } catch (const std::exception& error) {
    logs::Say("AP601", LogLevel::kError, "a dry-run record could not be made", error.what());
  }
}

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

namespace findings {

void PublishedBeforeCommit(const std::string& site, const std::string& store, const std::string& written_at) {
  Record record("published_before_commit");
  record.Text("site", site).Text("store", store).Text("target", "");
  if (!written_at.empty()) record.Text("written_at", written_at);
  record.Tell().Put();
}

void ConcurrentWrite(const std::string& site, const std::string& store, const std::string& written_at) {
  Record record("concurrent_write");
  record.Text("site", site).Text("store", store).Text("target", "");
  if (!written_at.empty()) record.Text("written_at", written_at);
  PutOften(record, "concurrent_write " + store + " " + site);
}

void Orphan(const std::string& site, const std::string& store) {
  Record("orphan").Text("site", site).Text("store", store).Tell().Put();
}

void LateWrite(const std::string& site, const std::string& store, const std::string& reason) {
  PutOften(Record("late_write").Text("site", site).Text("store", store).Text("reason", reason),
           "late_write " + reason + " " + store + " " + site);
}

void Incomplete(const std::string& reason, const std::string& store, const LineageScope* scope,
                const std::string& site) {
  Record record("incomplete");
  if (!site.empty()) record.Text("site", site);
  if (!store.empty()) record.Text("store", store);
  record.Text("reason", reason).CameFrom(Origin::Of(scope));
  PutOften(record, "incomplete " + reason + " " + store + " " + site);
}

void PassedOn(LineageScope& scope, std::string_view target, const std::string& site) {
  const Moment moment = Moment::Now();
  if (!scope.Brought() || !moment.span || !IsSampled(moment.span) || !scope.PassedAt(site)) return;
  Record("passed_on", moment).Text("site", site).CameFrom(Origin::Of(&scope)).Text("target", target).Put();
}

void CountWrite(const std::string& store) { counts::Add("writes", "", store); }

}  // namespace findings
}  // namespace antipode
