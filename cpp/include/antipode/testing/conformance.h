/// \file
/// The shim conformance kit: every case of the shim contract, on a shim's own store (spec SHIM-18, SHIM-33).
///
/// With GoogleTest, one test a case, each on a store that this function makes:
///
///     std::unique_ptr<antipode::testing::StoreUnderTest> MakeKv() { return std::make_unique<KvUnderTest>(); }
///     ANTIPODE_SHIM_CONFORMANCE(Kv, MakeKv)
#ifndef ANTIPODE_TESTING_CONFORMANCE_H_
#define ANTIPODE_TESTING_CONFORMANCE_H_

#include <string>
#include <vector>

#include "antipode/testing/store_under_test.h"

namespace antipode::testing {

/// What came of one case.
struct CaseOutcome {
  enum class Kind {
    kPassed,
    kFailed,
    kExcepted,  ///< It is listed as an exception, and fails as it should.
    kSkipped,   ///< A capability of the shim excludes it.
  };
  Kind kind = Kind::kPassed;
  std::string words;
};

/// The names of all cases: the same in every language.
std::vector<std::string> ConformanceCases();

/// Runs one case in a registry of its own. A listed exception that passes has failed.
CaseOutcome RunConformanceCase(StoreUnderTest& store, const std::string& name);

}  // namespace antipode::testing

/// Defines one test a case: `<Name>Conformance`. `Make` returns a `std::unique_ptr<StoreUnderTest>`. Needs
/// <gtest/gtest.h>.
#define ANTIPODE_SHIM_CONFORMANCE(Name, Make)                                                                   \
  class Name##Conformance : public ::testing::TestWithParam<std::string> {};                                    \
  TEST_P(Name##Conformance, Case) {                                                                             \
    const auto store = Make();                                                                                  \
    const auto outcome = ::antipode::testing::RunConformanceCase(*store, GetParam());                           \
    using Kind = ::antipode::testing::CaseOutcome::Kind;                                                        \
    if (outcome.kind == Kind::kExcepted || outcome.kind == Kind::kSkipped) GTEST_SKIP() << outcome.words;       \
    EXPECT_TRUE(outcome.kind == Kind::kPassed) << GetParam() << ": " << outcome.words;                          \
  }                                                                                                             \
  INSTANTIATE_TEST_SUITE_P(Shim, Name##Conformance, ::testing::ValuesIn(::antipode::testing::ConformanceCases()), \
                           [](const auto& parameter) { return parameter.param; })

#endif  // ANTIPODE_TESTING_CONFORMANCE_H_
