#include "antipode/barrier.h"
#include "engine/completions.h"
#include "engine/record_writer.h"
#include "engine/registry.h"

namespace antipode {

void Shutdown() {
  Completions::Instance().End();
  for (const auto& store : CurrentRegistry()->All()) store->Retire();
  Completions::Instance().End();  // what the servers' threads released last
  RecordWriter::Instance().End();
}

}  // namespace antipode
