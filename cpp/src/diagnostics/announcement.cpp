#include "diagnostics/announcement.h"

#include <atomic>

#include "antipode/logs.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "diagnostics/telemetry.h"
#include "store/registry.h"

namespace antipode {
namespace {

std::atomic<bool> told{false};

std::string Words(Store& store) {
  const std::size_t count = store.replicas().size();
  std::string words = store.name() + "(" + store.kind();
  if (count > 0) words += ", " + std::to_string(count) + (count == 1 ? " replica" : " replicas");
  return words + ")";
}

void Announce() {
  if (told.load(std::memory_order_relaxed) || told.exchange(true)) return;
  telemetry::Start();
  logs::Say(MessageCode::None(), LogLevel::kInfo, WordsInForce());
}

class Announcement final : public Observer {
 public:
  void RequestBegun() override { Announce(); }
};

Announcement observer;

}  // namespace

void AnnounceFirstUse() noexcept { AddObserver(observer); }

std::string WordsInForce() {
  const auto now = InForce();
  std::string stores;
  for (const auto& store : CurrentRegistry()->All()) stores += (stores.empty() ? "" : ",") + Words(*store);
  std::string line = "mode=" + std::string(ToString(now->mode)) +
                     " region=" + (now->region.empty() ? "-" : now->region) +
                     " stores=" + (stores.empty() ? "-" : stores) + " trust=" + std::string(ToString(now->trust));
  if (now->edge) line += " edge=true";
  return now->mode == Mode::kDryRun ? line + " records=" + now->records + "/" : line;
}

void ResetAnnouncement() { told.store(false); }

}  // namespace antipode
