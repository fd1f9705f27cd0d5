#include "antipode/barrier.h"
#include "engine/completions.h"
#include "engine/record_writer.h"
#include "engine/records.h"
#include "engine/registry.h"
#include "engine/repeats.h"
#include "history/recorder.h"

namespace antipode {

void Shutdown() {
  Completions::Instance().End();
  for (const auto& store : CurrentRegistry()->All()) store->Retire();
  Completions::Instance().End();  // what the servers' threads released last
  Repeats::Instance().End();  // and what is not read again is recorded without
  records::End();
  RecordWriter::Instance().End();
  history::End();
}

}  // namespace antipode
