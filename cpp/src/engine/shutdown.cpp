#include "antipode/barrier.h"
#include "engine/completions.h"
#include "engine/registry.h"
#include "history/recorder.h"
#include "observers.h"

namespace antipode {

void Shutdown() {
  Completions::Instance().End();
  for (const auto& store : CurrentRegistry()->All()) store->Retire();
  Completions::Instance().End();  // what the servers' threads released last
  Events().EngineStopped();
  history::End();
}

}  // namespace antipode
