// Tests of reads that dry-run follows.
#ifndef ANTIPODE_TESTS_ENGINE_FOLLOWED_READS_TEST_H_
#define ANTIPODE_TESTS_ENGINE_FOLLOWED_READS_TEST_H_

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "antipode/scope.h"
#include "antipode/telemetry.h"
#include "diagnostics/counts.h"
#include "diagnostics/followed_read.h"
#include "diagnostics/following.h"
#include "engine/records_test.h"

namespace antipode::testing {

class FollowedReadsTest : public RecordsTest {
 protected:
  FollowedReadsTest() { Be(Mode::kDryRun); }
  ~FollowedReadsTest() override { SetTelemetrySink(nullptr); }

  // The one finding of a read.
  Json Finding() const {
    std::vector<Json> found;
    Until([&] {
      found = Now("behind");
      for (Json& stale : Now("stale")) found.push_back(std::move(stale));
      return !found.empty();
    });
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? Json::object() : found.front();
  }

  static std::uint64_t Counted(const std::string& what) {
    std::uint64_t count = 0;
    for (const auto& [counted, number] : counts::Now()) count += std::get<0>(counted) == what ? number : 0;
    return count;
  }

  static void UntilNothingIsFollowed() {
    Until([] { return following::Followed() == 0; });
  }

  std::unique_ptr<FollowedRead> Begin(const std::shared_ptr<Store>& store, Site site = Site()) const {
    return FollowedRead::Begin(store, CurrentReading(), CurrentScope(), site);
  }
};

inline FollowedRead::Octets Text(const std::string& text) {
  return [text] { return std::optional(text); };
}

// A server that has the write so long after the first question.
inline Ask Later(Duration after) {
  const auto first = std::make_shared<std::optional<TimePoint>>();
  return [=](Span<const WriteId> ids, Server&) {
    if (!*first) *first = Clock::now();
    const bool there = Clock::now() - **first > after;
    return Answers(std::vector(ids.size(), there ? Visibility::Visible() : Visibility::NotYet()));
  };
}

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENGINE_FOLLOWED_READS_TEST_H_
