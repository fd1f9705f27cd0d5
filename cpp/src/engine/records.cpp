#include "engine/records.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include "engine/branches.h"
#include "engine/completions.h"
#include "engine/in_force.h"
#include "engine/json.h"
#include "engine/judgement.h"
#include "engine/record_writer.h"
#include "engine/registry.h"
#include "engine/measures.h"
#include "findings.h"

namespace antipode {
namespace {

std::atomic<Duration::rep> follow_for{Duration(std::chrono::seconds(30)).count()};
std::atomic<int> followed{0};

JsonObject Head(std::string_view kind) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const char* service = std::getenv("OTEL_SERVICE_NAME");
  const ProcessName process = ThisProcess();
  JsonObject record;
  record.Integer("record", 1)
      .Text("kind", kind)
      .Number("time", std::chrono::duration<double>(now).count())
      .Text("service", service == nullptr ? "" : service)
      .Text("region", InForce()->region)
      .Text("process", process.host + ":" + std::to_string(process.pid) + ":" + std::to_string(process.start));
  const auto span = telemetry::SpanWithFinding(kind);
  if (span) record.Text("trace_id", span->trace_id).Text("span_id", span->span_id);
  return record;
}

// Where a lineage came from (REC-7); asked while the request runs, which knows its route by now.
JsonObject Origin(const ScopePtr& scope) {
  JsonObject origin;
  if (!scope) return origin.Text("scope", "task");
  return origin.Text("scope", ToString(scope->kind())).Text("opened_by", scope->opened_by());
}

// One store of a barrier record; whether it was visible at the first look.
bool AddStore(std::vector<JsonObject>& stores, const Asked& asked, const Group& group, const std::string& site) {
  bool any = false;
  bool late = false;
  bool all_seen = true;
  Duration after{};
  std::set<std::string> servers;
  for (const Need& need : group.needs) {
    if (&need.server->store() != asked.store.get()) continue;
    any = true;
    late = late || need.late || !need.Is(Verdict::kVisible);
    all_seen = all_seen && need.seen && need.Is(Verdict::kVisible);
    if (need.seen) after = std::max<Duration>(after, *need.seen - need.since);
    servers.insert(need.server->address());
  }
  if (late) telemetry::Finding("behind", site);
  JsonObject store;
  store.Text("store", asked.store->name())
      .Text("store_kind", asked.store->kind())
      .Text("verdict", late || !any ? "not_yet" : "visible")
      .Texts("servers", {servers.begin(), servers.end()});
  if (any && late && all_seen) {
    store.Number("visible_after", Seconds(after));
  } else if (late || !any) {
    store.Null("visible_after");
  }
  stores.push_back(store);
  return any && !late;
}

void WriteBarrier(JsonObject head, const Plan& plan, const std::vector<Asked>& asked, const Group& group) {
  std::vector<JsonObject> stores;
  bool seen = true;
  for (const Asked& each : asked) seen = AddStore(stores, each, group, plan.site) && seen;
  if (std::find(plan.expected.begin(), plan.expected.end(), kBranches) != plan.expected.end()) {
    seen = false;  // nobody knows what is to come
    stores.push_back(JsonObject().Text("store", kBranches).Text("verdict", "unproven"));
  }
  for (const std::string& name : plan.elsewhere) {
    stores.push_back(JsonObject().Text("store", name).Text("verdict", "elsewhere"));
  }
  head.Text("reach", ToString(plan.reach))
      .Flag("satisfied", seen)
      .Flag("complete", seen && plan.elsewhere.empty() && plan.lineage.IsComplete(plan.AskedNames()))
      .Objects("stores", stores);
  RecordWriter::Instance().Put(head.Written());
}

// What a barrier in dry-run did not wait for, until it is seen or given up.
class Following : public Completion {
 public:
  Following(JsonObject head, Plan plan, std::vector<Asked> asked)
      : head_(std::move(head)), plan_(std::move(plan)), asked_(std::move(asked)) {
    followed.fetch_add(1);
  }
  ~Following() override { followed.fetch_sub(1); }

  void Run(bool /*due*/) override {
    group->GiveUp();
    WriteBarrier(std::move(head_), plan_, asked_, *group);
    plan_ = Plan();  // here, and not on the thread that happens to let go last
    asked_.clear();
    group.reset();
  }

  std::shared_ptr<Group> group;

 private:
  JsonObject head_;
  Plan plan_;
  std::vector<Asked> asked_;
};

}  // namespace

namespace records {

Duration FollowFor() noexcept { return Duration(follow_for.load()); }

void SetFollowFor(Duration duration) noexcept { follow_for.store(duration.count()); }

std::shared_ptr<Group> Follow(const Plan& plan, const std::vector<Asked>& asked) {
  const JsonObject origin = Origin(plan.scope);
  JsonObject head = Head("barrier");
  head.Text("site", plan.site).Object("origin", origin);
  if (plan.Vacuous()) {
    JsonObject vacuous = Head("vacuous");
    vacuous.Text("site", plan.site)
        .Object("origin", origin)
        .Texts("lineage_stores", plan.elsewhere)
        .Texts("registered", NamesOf(CurrentRegistry()->All()));
    RecordWriter::Instance().Put(vacuous.Written());
  }
  auto following = std::make_shared<Following>(head, plan, asked);
  auto group = std::make_shared<Group>(FollowFor(), [waits = std::weak_ptr<Following>(following)] {
    if (auto waiting = waits.lock()) Completions::Instance().Now(std::move(waiting));
  });
  group->follows = true;
  if (followed.load() > kMostFollowed) {  // bounded: this one is not followed, and its record says that nobody knows
    WriteBarrier(std::move(head), plan, asked, *group);
    return group;
  }
  following->group = group;
  for (const Asked& each : asked) {
    for (const auto& server : each.servers) {
      for (const WriteId& write_id : each.ids) server->Park(group->Add(write_id, server));
    }
  }
  Completions::Instance().At(group->since + group->timeout, following);
  if (!group->Parked()) Completions::Instance().Now(std::move(following));
  return group;
}

StoreResults JudgeNow(const Plan& plan, const Group& group) {
  Group now(Duration::zero());  // what is followed changes meanwhile: each need is copied under its server's lock
  for (const Need& need : group.needs) need.server->CopyTo(now.Add(need.write_id, need.server), need);
  return JudgeStores(plan, now, Duration::zero(), true);
}

bool Flush(Duration timeout) { return RecordWriter::Instance().Flush(timeout); }

}  // namespace records

namespace findings {

void PublishedBeforeCommit(const std::string& site, const std::string& store, const std::string& written_at) {
  JsonObject record = Head("published_before_commit");
  record.Text("site", site).Text("store", store).Text("target", "");
  if (!written_at.empty()) record.Text("written_at", written_at);
  RecordWriter::Instance().Put(record.Written());
}

void Orphan(const std::string& site, const std::string& store) {
  RecordWriter::Instance().Put(Head("orphan").Text("site", site).Text("store", store).Written());
}

}  // namespace findings
}  // namespace antipode
