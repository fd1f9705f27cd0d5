#include "antipode/testing/isolated.h"

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "diagnostics/announcement.h"
#include "diagnostics/measured.h"
#include "diagnostics/recorder.h"
#include "diagnostics/records.h"
#include "diagnostics/repeats.h"
#include "engine/barrier_log.h"
#include "engine/completions.h"
#include "scope/context.h"
#include "store/registry.h"
#include "store/store_impl.h"

namespace antipode::testing {

Isolated::Isolated() : registry_before_(ReplaceRegistry(std::make_shared<Registry>())) {
  ResetSettings();
  logs::Reset();
  ResetAnnouncement();
  telemetry::Reset();
  context::ForgetLineages();
  records::Forget();
  history::Forget();
  BarrierLog::Begin();
}

Isolated::~Isolated() {
  BarrierLog::End();
  Completions::Instance().End();  // nothing that one test left goes on in the next
  const std::shared_ptr<Registry> mine = ReplaceRegistry(std::static_pointer_cast<Registry>(registry_before_));
  for (const auto& store : mine->All()) store->impl().Retire();
  Repeats::Instance().End();
  records::Forget();
  history::Forget();
  ResetSettings();
  telemetry::Reset();
}

int Barriers(const std::string& store) { return BarrierLog::Count(store); }

Result<void> AssertBarriers(const std::string& store, int at_least) {
  const int count = Barriers(store);
  if (count >= at_least) return {};
  return Error{ErrorCode::kConfiguration, "AP501",
               std::to_string(count) + " barriers judged " + store + ", want at least " + std::to_string(at_least) +
                   ": the read is unprotected"};
}

bool FlushHistory(std::chrono::nanoseconds timeout) { return history::Flush(timeout); }

bool FlushRecords(std::chrono::nanoseconds timeout, bool summary) {
  if (summary) records::End();
  return records::Flush(timeout);
}

}  // namespace antipode::testing
