#include "antipode/barrier.h"
#include "engine/completions.h"
#include "engine/registry.h"
#include "observers.h"

namespace antipode {

void Shutdown() {
  Completions::Instance().End();
  for (const auto& store : CurrentRegistry()->All()) store->Retire();
  Completions::Instance().End();  // what the servers' threads released last
  Events().EngineStopped();
}

}  // namespace antipode
