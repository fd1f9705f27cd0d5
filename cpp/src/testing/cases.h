/// \file
/// The cases of the conformance kit, by their subjects.
#ifndef ANTIPODE_SRC_TESTING_CASES_H_
#define ANTIPODE_SRC_TESTING_CASES_H_

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "antipode/testing/store_under_test.h"

namespace antipode::testing {

/// Which shims a case is for.
struct CaseShims {
  std::vector<Versions> versions;  ///< Any, where empty.
  bool queues = true;              ///< Messages are not overwritten, deleted or read again.
};

inline const CaseShims kAny{};
inline const CaseShims kNoQueues{{}, false};
inline const CaseShims kPositions{{Versions::kPosition}, true};
inline const CaseShims kOrdered{{Versions::kPosition, Versions::kObject}, false};

struct Case {
  std::string name;
  CaseShims for_shims;
  bool spoils;  ///< It promotes, restarts or re-points servers.
  std::function<void(StoreUnderTest& store)> run;
};

/// A case ends here: a capability that is not declared excludes it.
class CaseSkipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::vector<Case> CasesOfValues();
std::vector<Case> CasesOfReads();
std::vector<Case> CasesOfLinks();
std::vector<Case> CasesOfFailovers();
std::vector<Case> CasesOfWriters();
std::vector<Case> CasesOfWaiting();
std::vector<Case> CasesOfServers();
std::vector<Case> CasesOfDoubts();
std::vector<Case> CasesOfOwnReads();

/// A registry of a case's own, beside the one in which `Begin` wrapped its clients.
class OtherRegistry {
 public:
  OtherRegistry();
  OtherRegistry(const OtherRegistry&) = delete;
  OtherRegistry& operator=(const OtherRegistry&) = delete;
  ~OtherRegistry();

 private:
  std::shared_ptr<void> before_;
};

/// Writes like these that nobody has made: far ahead, or under a mark of nobody's.
Lineage UnheardOf(const StoreUnderTest& store, const Lineage& lineage);

/// Every line logged since the case began, one below the other.
std::string LinesOfCase();

/// Runs this on a thread of its own, and its failure in `Join`.
class CaseThread {
 public:
  explicit CaseThread(std::function<void()> work);
  CaseThread(CaseThread&&) = default;
  CaseThread& operator=(CaseThread&&) = default;
  ~CaseThread();
  void Join();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_SRC_TESTING_CASES_H_
