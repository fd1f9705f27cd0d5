#include <utility>

#include "antipode/memory.h"
#include "antipode/messages.h"
#include "antipode/scope.h"
#include "antipode/shim/read.h"
#include "antipode/shim/write.h"
#include "memory/log.h"
#include "scope/unscoped.h"

namespace antipode {
namespace {

// What a read returned, to be compared.
std::string OctetsOf(const memory::Log::StoredObject& seen) {
  return seen.cell && seen.cell->value ? "1" + *seen.cell->value : std::string();
}

history::Content ContentOf(const std::optional<std::string>& value) {
  return value ? history::Content::kSomething : history::Content::kNothing;
}

template <class T>
std::optional<T> ValueOf(Result<T> made) {
  return made.ok() ? std::optional<T>(std::move(made).value()) : std::nullopt;
}

// What a read found: each value says which write it is.
ReadValue FoundBy(const Store& store, std::string_view key, const memory::Log::StoredObject& seen, bool is_collected) {
  const bool positions = store.capabilities().versions == Versions::kPosition;
  ReadValue found;
  found.key = key;
  found.content = ContentOf(seen.cell ? seen.cell->value : std::nullopt);
  if (is_collected) {
    found.lineage = LineageAtRest(seen.cell ? seen.cell->lineage : std::string(), store.name(),
                                  store.options()->lineage_in.value_or(true));
  }
  if (positions) {
    found.covers = ValueOf(WriteId::Position(store.name(), seen.position.epoch, seen.position.counter));
  }
  if (!seen.cell) return found;
  const auto* place = std::get_if<Ordered>(&seen.cell->version);
  found.version = ValueOf(positions && place != nullptr
                              ? WriteId::Position(store.name(), place->epoch, place->counter)
                              : store.MakeWriteId(key, seen.cell->version));
  return found;
}

}  // namespace

MemoryStore::MemoryStore(MemoryOptions options)
    : log_(std::make_shared<memory::Log>(options)), shim_(MemoryShim(options.versions, options.is_monkey())) {}

const std::string& MemoryStore::name() const noexcept { return log_->name(); }

MemoryClient MemoryStore::Client(std::string_view region, StoreOptions options) {
  memory::Node& node = log_->NodeOf(region);
  options.name = name();
  if (!options.rest) options.RestIn("field");
  std::shared_ptr<Store> store = JoinStore(shim_, options).value();
  std::shared_ptr<Server> server = store->UseServer(options, memory::Target{log_, &node});
  return MemoryClient(log_, node, std::move(store), std::move(server));
}

Targets MemoryStore::TargetsOf(const std::vector<std::string>& regions) const {
  Targets targets;
  for (const std::string& region : regions) targets.emplace_back(memory::Target{log_, &log_->NodeOf(region)});
  return targets;
}

void MemoryStore::Register(const std::vector<std::string>& regions) {
  static_cast<void>(JoinStore(shim_, StoreOptions(name()).ReplicaTargets(TargetsOf(regions))).value());
}

void MemoryStore::SetLag(std::string_view region, std::chrono::nanoseconds lag) { log_->SetLag(region, lag); }
void MemoryStore::Freeze(std::string_view region) { log_->Freeze(region); }
void MemoryStore::Heal(std::string_view region) { log_->Heal(region); }
void MemoryStore::Promote(std::string_view region, std::size_t lose) { log_->Promote(region, lose); }
void MemoryStore::Repoint(std::string_view region, std::string_view source) { log_->Repoint(region, source); }
void MemoryStore::Restart(std::string_view region) { log_->Restart(region); }
void MemoryStore::Stop(std::string_view region) { log_->Stop(region); }
void MemoryStore::LoseNextAnswer() { log_->LoseNextAnswer(); }
void MemoryStore::Settle(std::string_view epoch, std::uint64_t counter) { log_->Settle(epoch, counter); }
std::string MemoryStore::Instance(std::string_view region) const { return log_->Instance(region); }

void MemoryStore::Put(std::string_view key, std::string_view value) {
  log_->Write(log_->primary(), std::string(key), std::string(value), {});
}

std::optional<std::string> MemoryStore::Look(std::string_view region, std::string_view key) const {
  const auto seen = log_->Look(log_->NodeOf(region), std::string(key));
  return seen && seen->cell ? seen->cell->value : std::nullopt;
}

// The client

MemoryClient::MemoryClient(std::shared_ptr<memory::Log> log, memory::Node& node, std::shared_ptr<Store> store,
                           std::shared_ptr<Server> server)
    : log_(std::move(log)), node_(&node), store_(std::move(store)), server_(std::move(server)) {}

MemoryReply MemoryClient::Set(std::string_view key, std::string_view value, Site site) {
  return Write(key, std::string(value), site);
}

MemoryReply MemoryClient::Delete(std::string_view key, Site site) { return Write(key, std::nullopt, site); }

MemoryReply MemoryClient::Get(std::string_view key, Site site) {
  ReadOptions asked;
  asked.waits = store_->options()->wait_on_read.value_or(false);
  if (store_->capabilities().versions != Versions::kPosition) asked.keys = {std::string(key)};
  Read read(store_, asked, site);
  const Result<bool> waited = read.Wait(server_, store_->timeout());
  if (!waited.ok()) return {MemoryOutcome::kWaited, waited.error().message, {}, waited.error()};
  const auto seen = log_->Read(*node_, std::string(key));
  if (!seen) {
    return {MemoryOutcome::kUnreachable,
            store_->name() + ": the server in " + node_->region + " refuses connections",
            {},
            {}};
  }
  if (read.is_observed()) {
    const auto again = [log = log_, node = node_, key = std::string(key)]() -> std::optional<std::string> {
      const auto now = log->Look(*node, key);
      return now ? std::optional(OctetsOf(*now)) : std::nullopt;
    };
    const ReadValue found = FoundBy(*store_, key, *seen, read.collects());
    read.Returned({server_, {found}, [&seen] { return OctetsOf(*seen); }, again});
  }
  return {MemoryOutcome::kDone, {}, seen->cell ? seen->cell->value : std::nullopt, {}};
}

MemoryReply MemoryClient::Write(std::string_view key, std::optional<std::string> value, const Site& site) {
  const std::string name(key);
  if (!store_->records()) {
    auto plain = log_->Write(*node_, name, std::move(value), {});
    return {plain.outcome, std::move(plain.message), {}, {}};
  }
  const auto options = store_->options();
  std::string beside;
  if (options->rest.value_or("none") == "field") {
    const ScopePtr scope = CurrentScope();
    const bool lineage_out = options->lineage_out.value_or(true);
    const Result<Lineage> leaving = scope ? scope->Outgoing(site) : LineageUnscoped(lineage_out, site);
    if (!leaving.ok()) return {MemoryOutcome::kWaited, leaving.error().message, {}, leaving.error()};
    beside = TextAtRest(*leaving, lineage_out);
  }
  Writing write(store_, key, site);
  if (write.noted() != nullptr) {
    write.noted()->Changes(std::vector{history::KeyChange{name, ContentOf(value)}});
  }
  auto written = log_->Write(*node_, name, std::move(value), std::move(beside));
  if (written.outcome == MemoryOutcome::kUnreachable) {
    write.OutcomeUnknown();
  } else if (written.version) {
    write.Record(*written.version);
  } else {
    write.Abandon();
  }
  return {written.outcome, std::move(written.message), {}, {}};
}

}  // namespace antipode
