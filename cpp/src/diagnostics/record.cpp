#include "diagnostics/record.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "antipode/logs.h"
#include "base/fork.h"
#include "base/in_force.h"
#include "diagnostics/record_writer.h"
#include "diagnostics/telemetry.h"

namespace antipode {
namespace {

constexpr std::string_view kPrefix = "antipode.";

// Fields that a span's event has, and how they are called there (OBS-11).
std::string ToldAs(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kTold = {
      "kind",    "site",       "region", "process", "store", "server",         "confirmed",
      "barrier", "written_at", "target", "reason",  "reach", "lineage_stores", "registered"};
  if (name == "store_kind") return "antipode.store.kind";
  if (std::find(kTold.begin(), kTold.end(), name) == kTold.end()) return {};
  return std::string(kPrefix).append(name);
}

// The looks of scopes that live; what has ended goes when there are twice as many as were left the last time.
struct KeptObservations {
  std::mutex mutex;
  std::map<std::weak_ptr<LineageScope>, std::shared_ptr<const BarrierObservation>, std::owner_less<>> of;
  std::size_t most = kFewestLooks;

  static constexpr std::size_t kFewestLooks = 1024;

  KeptObservations() { HoldRoundForks(mutex, LockOrder::kInner); }

  static KeptObservations& Instance() {
    static auto* kept = new KeptObservations;  // as the engine: threads of an application may outlive `main`
    return *kept;
  }

  void Tidy() {
    if (of.size() < most) return;
    for (auto at = of.begin(); at != of.end();) at = at->first.expired() ? of.erase(at) : std::next(at);
    most = std::max(kFewestLooks, 2 * of.size());
  }
};

}  // namespace

Moment Moment::Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(now).count(), telemetry::CurrentSpan()};
}

std::shared_ptr<const BarrierObservation> BarrierObservation::Of(const ScopePtr& scope) {
  KeptObservations& kept = KeptObservations::Instance();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  const auto found = scope ? kept.of.find(scope) : kept.of.end();
  return found == kept.of.end() ? nullptr : found->second;
}

void BarrierObservation::Keep(const ScopePtr& scope, std::shared_ptr<const BarrierObservation> looks) {
  KeptObservations& kept = KeptObservations::Instance();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  kept.Tidy();
  kept.of.insert_or_assign(scope, std::move(looks));
}

bool BarrierObservation::Hold(const std::string& address, const std::vector<WriteId>& ids) const {
  const auto found = asked.find(address);
  return found != asked.end() && std::all_of(ids.begin(), ids.end(), [&](const WriteId& id) {
           return std::find(found->second.begin(), found->second.end(), id) != found->second.end();
         });
}

Origin Origin::Of(const LineageScope* scope) {
  if (scope == nullptr) return {"task", "", ""};
  return {std::string(ToString(scope->kind())), scope->opened_by(), scope->queue()};
}

Record::Record(std::string_view kind, const Moment& moment) {
  const char* service = std::getenv("OTEL_SERVICE_NAME");
  const ProcessName process = ThisProcess();
  json_.Integer("record", 1);
  Text("kind", kind);
  json_.Number("time", moment.time).Text("service", service == nullptr ? "" : service);
  Text("region", InForce()->region);
  Text("process", process.host + ":" + std::to_string(process.pid) + ":" + std::to_string(process.start));
  if (moment.span) json_.Text("trace_id", moment.span->trace_id).Text("span_id", moment.span->span_id);
}

Record& Record::Text(std::string_view name, std::string_view value) {
  json_.Text(name, value);
  const std::string told = value.empty() ? std::string() : ToldAs(name);
  if (!told.empty()) told_[told] = std::string(value);
  return *this;
}

Record& Record::Texts(std::string_view name, const std::vector<std::string>& values) {
  json_.Texts(name, values);
  if (const std::string told = ToldAs(name); !told.empty()) told_[told] = values;
  return *this;
}

Record& Record::Number(std::string_view name, double value) {
  json_.Number(name, value);
  return *this;
}

Record& Record::Integer(std::string_view name, std::int64_t value) {
  json_.Integer(name, value);
  return *this;
}

Record& Record::Flag(std::string_view name, bool value) {
  json_.Flag(name, value);
  return *this;
}

Record& Record::CameFrom(const Origin& origin) {
  JsonObject json;
  json.Text("scope", origin.scope);
  told_["antipode.origin.scope"] = origin.scope;
  if (!origin.opened_by.empty()) {
    json.Text("opened_by", origin.opened_by);
    told_["antipode.origin.opened_by"] = origin.opened_by;
  }
  if (!origin.store.empty()) {
    json.Text("store", origin.store);
    told_["antipode.origin.store"] = origin.store;
  }
  json_.Object("origin", json);
  return *this;
}

Record& Record::VisibleAfter(const std::optional<double>& seconds) {
  if (seconds) {
    json_.Number("visible_after", *seconds);
  } else {
    json_.Null("visible_after");
  }
  return *this;
}

Record& Record::Position(std::string_view name, const Ordered& version) {
  json_.Object(name, JsonObject().Text("epoch", version.epoch).Text("counter", std::to_string(version.counter)));
  return *this;
}

Record& Record::Objects(std::string_view name, const std::vector<JsonObject>& values) {
  json_.Objects(name, values);
  return *this;
}

const Record& Record::Tell() const {
  telemetry::FindingEvent(told_);
  return *this;
}

void Record::Put() const { RecordWriter::Instance().Put(Written()); }

namespace records {

void Try(const std::function<void()>& what) noexcept {
  try {
    what();
  } catch (const std::exception& error) {
    logs::Say("AP601", LogLevel::kError, "a dry-run record could not be made", error.what());
  }
}

}  // namespace records

}  // namespace antipode
