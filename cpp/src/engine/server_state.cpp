#include "engine/server_state.h"

#include <utility>

#include "antipode/store.h"
#include "store/ages.h"
#include "store/store_impl.h"

namespace antipode {

ServerState::ServerState(Store& of, std::shared_ptr<Shim> with)
    : store(of), store_name(of.name()), shim(std::move(with)) {}

std::optional<Proof> ServerState::KeptProof(const PendingWait& need, TimePoint now) const {
  if (!need.is_position || proofs.proved_at() < need.fresh_from) return std::nullopt;
  if (!proofs.Hold(need.epoch, need.counter, now, InForce()->free_path_ttl)) return std::nullopt;
  return Proof{proofs.proved_at(), proofs.generation(), true};
}

Duration ServerState::LagOf(const std::string& epoch, TimePoint now) const {
  if (epoch.empty() || epoch != proofs.epoch()) return Duration::zero();
  const auto own = proofs.applied().find(epoch);
  return store.impl().ages().Lag(epoch, own == proofs.applied().end() ? 0 : own->second, now);
}

void ServerState::AfterFork() {
  // What waited belongs to threads of the parent. It is left where it is: to end it would call back into the
  // application.
  new WaitQueue(std::move(waiters));  // NOLINT(cppcoreguidelines-owning-memory): left on purpose
  waiters = NoWaiters();
  proofs.Forget();
  reach.Answered();
  wanted_at = kNever;
  hurried = false;
}

}  // namespace antipode
