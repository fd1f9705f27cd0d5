/// \file
/// For tests of services: an isolated Antipode, and what barriers judged (spec BAR).
#ifndef ANTIPODE_TESTING_ISOLATED_H_
#define ANTIPODE_TESTING_ISOLATED_H_

#include <chrono>
#include <memory>
#include <string>

#include "antipode/result.h"

namespace antipode::testing {

/// A fresh registry, fresh settings (from the environment) and counts while it lives. One at a time.
class [[nodiscard]] Isolated {
 public:
  Isolated();
  Isolated(const Isolated&) = delete;
  Isolated& operator=(const Isolated&) = delete;
  ~Isolated();

 private:
  std::shared_ptr<void> registry_before_;
};

/// How many barriers judged this store since the innermost `Isolated` began.
int Barriers(const std::string& store);

/// Whether the code under test waited for this store at least so often; the error's words say that the read is
/// unprotected.
///
///     ASSERT_TRUE(antipode::testing::AssertBarriers("blog-posts").ok());
Result<void> AssertBarriers(const std::string& store, int at_least = 1);

/// Waits until dry-run's records so far are on disk; false where that took longer. With `summary` the counts since the
/// last one are written, too, and what was held back, as at the end of a process.
bool FlushRecords(std::chrono::nanoseconds timeout, bool summary = false);

/// Waits until the history that is recorded so far is on disk (`ANTIPODE_HISTORY`); false where that took longer.
bool FlushHistory(std::chrono::nanoseconds timeout);

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTING_ISOLATED_H_
