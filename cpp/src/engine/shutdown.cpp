#include "antipode/barrier.h"
#include "base/observers.h"
#include "engine/completions.h"
#include "store/registry.h"
#include "store/store_impl.h"

namespace antipode {

void Shutdown() {
  Completions::Instance().End();
  for (const auto& store : CurrentRegistry()->All()) store->impl().Retire();
  Completions::Instance().End();  // what the servers' threads released last
  Events().EngineStopped();
}

}  // namespace antipode
