#include "antipode/barrier.h"

#include <utility>

#include "engine/barrier_waits.h"
#include "engine/run.h"
#include "engine/threads.h"
#include "engine/waiting.h"
#include "model/held_result.h"

namespace antipode {
namespace {

BarrierResult Blocking(const Lineage* lineage, const BarrierOptions& options, const Site& site) {
  if (threads::OnEngineThread()) {
    return Mistaken({ErrorCode::kBlockingCall, "AP105",
                     "antipode::Barrier() was called on Antipode's own thread and would stop every barrier on it.\n"
                     "  Use: antipode::BarrierAsync(…), or give that one an Executor. (site: " +
                         site.ToString() + ")"});
  }
  BarrierStart begun = Begin(lineage, options, site);
  if (begun.result) return *std::move(begun.result);
  BarrierWaits waits(std::move(begun.plan));
  do {
    WaitFor(*waits.Begin(), waits.plan().Wanted());
  } while (!waits.Take());
  return Finish(waits.plan(), waits.group());
}

}  // namespace

BarrierResult Barrier(const BarrierOptions& options, Site site) { return Blocking(nullptr, options, site); }

BarrierResult Barrier(const Lineage& lineage, const BarrierOptions& options, Site site) {
  return Blocking(&lineage, options, site);
}

}  // namespace antipode
