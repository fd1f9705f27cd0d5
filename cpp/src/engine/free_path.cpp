#include "engine/free_path.h"

#include <utility>
#include <vector>

#include "base/in_force.h"
#include "base/observers.h"
#include "engine/barrier_log.h"
#include "model/held_result.h"
#include "scope/scope_impl.h"
#include "store/registry.h"
#include "store/server.h"
#include "store/store_impl.h"

namespace antipode {
namespace {

constexpr double kLongSeconds = 60;  // a longer one is warned about

// What the last barrier of a scope proved, for repeating it in O(1).
struct Pass {
  std::uint64_t registry_generation;
  std::uint64_t settings_generation;
  Duration ttl;
  std::vector<std::pair<std::shared_ptr<Store>, std::uint64_t>> stores;
  std::vector<std::pair<std::shared_ptr<Server>, std::uint64_t>> servers;
  BarrierResult result;
};

bool IsOrdinary(const BarrierOptions& options) noexcept {
  const auto plain = [](const std::optional<Policy>& policy) {
    return !policy || *policy == Policy::kRaise || *policy == Policy::kProceed;
  };
  const auto& timeout = options.timeout();
  return !options.stores() && !options.reach() && !options.require_complete() && !options.dry_run() &&
         (!timeout || (timeout->count() >= 0 && timeout->count() <= kLongSeconds)) && plain(options.on_timeout()) &&
         (plain(options.on_unproven()) || *options.on_unproven() == Policy::kAsTimeout) && plain(options.on_vacuous());
}

}  // namespace

std::optional<BarrierResult> FreePass(const LineageScope& scope, const BarrierOptions& options) {
  const std::shared_ptr<const void> kept = scope.impl().Proof();
  if (!kept || !IsOrdinary(options)) return std::nullopt;
  const auto& pass = *static_cast<const Pass*>(kept.get());
  if (pass.registry_generation != RegistryGeneration() || pass.settings_generation != SettingsGeneration()) {
    return std::nullopt;
  }
  const TimePoint now = Clock::now();
  for (const auto& [server, proof] : pass.servers) {
    if (!server->impl().StillHolds(proof, now, pass.ttl)) return std::nullopt;
  }
  for (const auto& [store, generation] : pass.stores) {
    // The clients first: what they were led to before that look shows in the generation behind it.
    if (store->impl().RefreshDue(now) || store->impl().generation() != generation) return std::nullopt;
  }
  CountBarrier(BarrierOutcome::kFree);
  if (BarrierLog::Active()) {
    for (const auto& each : pass.stores) BarrierLog::Note(each.first->name());
  }
  return pass.result;
}

void Remember(const Plan& plan, const BarrierResult& result) {
  if (!plan.scope || plan.names || plan.reach != Reach::kRegion || result.vacuous() || !plan.recorded.empty() ||
      !plan.in_doubt.empty()) {
    return;
  }
  const Duration ttl = InForce()->free_path_ttl;
  if (ttl <= Duration::zero() && !plan.asked.empty()) return;
  std::vector<std::pair<std::shared_ptr<Store>, std::uint64_t>> stores;
  std::vector<std::pair<std::shared_ptr<Server>, std::uint64_t>> servers;
  for (const StoreRequest& asked : plan.asked) {
    stores.emplace_back(asked.store, asked.generation);
    for (const auto& server : asked.servers) {
      std::optional<std::uint64_t> proof;
      for (const WriteId& write_id : asked.ids) {
        if (!write_id.is_position()) return;
        const auto covers = server->impl().ProofOf(write_id.ordered()->epoch, write_id.ordered()->counter);
        if (!covers || (proof && *proof != *covers)) return;
        proof = covers;
      }
      if (proof) servers.emplace_back(server, *proof);
    }
  }
  plan.scope->impl().KeepProof(plan.lineage,
                        std::make_shared<const Pass>(Pass{plan.registry_generation, plan.settings_generation, ttl,
                                                          std::move(stores), std::move(servers), WithoutWait(result)}));
}

}  // namespace antipode
