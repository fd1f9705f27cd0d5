#include "antipode/barrier.h"

#include <utility>

#include "engine/held_result.h"
#include "engine/run.h"
#include "engine/threads.h"
#include "engine/waiting.h"

namespace antipode {
namespace {

BarrierResult Blocking(const Lineage* lineage, const BarrierOptions& options, const Site& site) {
  if (threads::OnEngineThread()) {
    return Mistaken({ErrorCode::kBlockingCall, "AP105",
                     "antipode::Barrier() was called on Antipode's own thread and would stop every barrier on it.\n"
                     "  Use: antipode::BarrierAsync(…), or give that one an Executor. (site: " +
                         site.ToString() + ")"});
  }
  Begun begun = Begin(lineage, options, site);
  if (begun.result) return *std::move(begun.result);
  const auto group = WaitFor(begun.plan->Wanted(), begun.plan->timeout, begun.plan->LooksTwice());
  return Finish(*begun.plan, *group);
}

}  // namespace

BarrierResult Barrier(const BarrierOptions& options, Site site) { return Blocking(nullptr, options, site); }

BarrierResult Barrier(const Lineage& lineage, const BarrierOptions& options, Site site) {
  return Blocking(&lineage, options, site);
}

}  // namespace antipode
