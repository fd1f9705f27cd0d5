#include "antipode/testing/conformance.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "antipode/logs.h"
#include "antipode/store.h"
#include "antipode/testing/isolated.h"
#include "store/registry.h"
#include "store/store_impl.h"
#include "testing/cases.h"

namespace antipode::testing {
namespace {

const std::string kExceptionsAreCases = "exceptions_are_cases";

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& part : {CasesOfValues(), CasesOfReads(), CasesOfOwnReads(), CasesOfLinks(), CasesOfServers(),
                           CasesOfFailovers(), CasesOfWriters(), CasesOfDoubts(), CasesOfWaiting()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Each listed exception is a case, with a reason.
CaseOutcome CheckExceptions(const StoreUnderTest& store) {
  const std::vector<std::string> names = ConformanceCases();
  for (const auto& [name, reason] : store.exceptions()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return {CaseOutcome::Kind::kFailed, "there is no case " + name};
    }
    if (reason.empty()) return {CaseOutcome::Kind::kFailed, "an exception without a reason: " + name};
  }
  return {};
}

std::string Excluded(const Case& chosen, const Capabilities& capable) {
  const auto& versions = chosen.for_shims.versions;
  if (!versions.empty() && std::find(versions.begin(), versions.end(), capable.versions) == versions.end()) {
    return "not for versions=" + std::string(ToString(capable.versions));
  }
  if (!chosen.for_shims.queues && capable.tap) {
    return "not for queues: messages are not overwritten, deleted or read again";
  }
  return {};
}

struct Lines {
  std::mutex mutex;
  std::string all;
};

Lines& CaseLines() {
  static auto* const lines = new Lines();
  return *lines;
}

// What a case logs goes here, and nowhere else.
class Listening {
 public:
  Listening() {
    CaseLines().all.clear();
    SetLogSink([](LogLevel, std::string_view line) {
      const std::lock_guard<std::mutex> lock(CaseLines().mutex);
      CaseLines().all.append(line).append("\n");
    });
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() { SetLogSink(nullptr); }
};

CaseOutcome Run(const Case& chosen, StoreUnderTest& store) {
  const Isolated isolated;
  const Listening listening;
  CaseOutcome outcome;
  try {
    store.Begin();
    chosen.run(store);
  } catch (const CaseSkipped& skipped) {
    outcome = {CaseOutcome::Kind::kSkipped, skipped.what()};
  } catch (const std::exception& failed) {
    outcome = {CaseOutcome::Kind::kFailed, failed.what()};
  }
  try {
    store.Recover(chosen.spoils);
  } catch (const std::exception& failed) {
    outcome = {CaseOutcome::Kind::kFailed, std::string("the store does not recover: ") + failed.what()};
  }
  return outcome;
}

}  // namespace

std::string LinesOfCase() {
  const std::lock_guard<std::mutex> lock(CaseLines().mutex);
  return CaseLines().all;
}

std::vector<std::string> ConformanceCases() {
  std::vector<std::string> names;
  for (const Case& each : AllCases()) names.push_back(each.name);
  names.push_back(kExceptionsAreCases);
  return names;
}

CaseOutcome RunConformanceCase(StoreUnderTest& store, const std::string& name) {
  if (name == kExceptionsAreCases) return CheckExceptions(store);
  const std::vector<Case> all = AllCases();
  const auto chosen = std::find_if(all.begin(), all.end(), [&](const Case& each) { return each.name == name; });
  if (chosen == all.end()) return {CaseOutcome::Kind::kFailed, "there is no case " + name};
  const std::string excluded = Excluded(*chosen, store.capabilities());
  if (!excluded.empty()) return {CaseOutcome::Kind::kSkipped, excluded};
  CaseOutcome outcome = Run(*chosen, store);
  const auto exceptions = store.exceptions();
  const auto exception = exceptions.find(name);
  if (exception == exceptions.end() || outcome.kind == CaseOutcome::Kind::kSkipped) return outcome;
  if (outcome.kind == CaseOutcome::Kind::kPassed) {
    return {CaseOutcome::Kind::kFailed, "listed as an exception, and passes: " + exception->second};
  }
  return {CaseOutcome::Kind::kExcepted, exception->second};
}

OtherRegistry::OtherRegistry() : before_(ReplaceRegistry(std::make_shared<Registry>())) {}

OtherRegistry::~OtherRegistry() {
  const auto mine = ReplaceRegistry(std::static_pointer_cast<Registry>(before_));
  for (const auto& store : mine->All()) store->impl().Retire();
}

Lineage UnheardOf(const StoreUnderTest& store, const Lineage& lineage) {
  std::vector<WriteId> ids;
  for (const WriteId& id : lineage.OfStore(store.name)) {
    const Ordered* const version = id.ordered();
    const Version unheard =
        version == nullptr ? Version(Opaque{"kit-unheard-of"}) : Version(Ordered{version->epoch, UINT64_MAX});
    ids.push_back((id.is_position() ? WriteId::Position(store.name, version->epoch, UINT64_MAX)
                                    : WriteId::Make(store.name, id.key(), unheard)).value());
  }
  return Lineage(ids);
}

struct CaseThread::State {
  std::thread thread;
  std::exception_ptr failure;
};

CaseThread::CaseThread(std::function<void()> work) : state_(std::make_shared<State>()) {
  State& state = *state_;
  state.thread = std::thread([&state, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      state.failure = std::current_exception();
    }
  });
}

CaseThread::~CaseThread() {
  if (state_ && state_->thread.joinable()) state_->thread.join();
}

void CaseThread::Join() {
  state_->thread.join();
  if (state_->failure) std::rethrow_exception(state_->failure);
}

}  // namespace antipode::testing
