// The conformance kit on the memory store, in its three modes (SHIM-18, SHIM-33, BAR-61), and on broken ones that it
// has to catch.
#include "antipode/testing/conformance.h"

#include <gtest/gtest.h>

#include "engine/memory_under_test.h"
#include "memory/shim.h"

namespace antipode::testing {
namespace {

std::unique_ptr<StoreUnderTest> MakePositions() { return std::make_unique<MemoryUnderTest>(Versions::kPosition); }
std::unique_ptr<StoreUnderTest> MakeObjects() { return std::make_unique<MemoryUnderTest>(Versions::kObject); }
std::unique_ptr<StoreUnderTest> MakeOpaque() { return std::make_unique<MemoryUnderTest>(Versions::kOpaque); }

ANTIPODE_SHIM_CONFORMANCE(Positions, MakePositions);
ANTIPODE_SHIM_CONFORMANCE(Objects, MakeObjects);
ANTIPODE_SHIM_CONFORMANCE(Opaque, MakeOpaque);

TEST(Conformance, HasTheCasesOfEveryLanguage) { EXPECT_EQ(ConformanceCases().size(), 68U); }

// Shims with one defect each

class PassesAlways : public memory::PositionShim {
 protected:
  void Proved(const memory::Node&, Server&) const override {}
  Visibility Judge(const memory::Node&, const WriteId&) const override { return Visibility::Visible(); }
};

class ComparesKeysOnly : public memory::ObjectShim {
 protected:
  Visibility Judge(const memory::Node& node, const WriteId& write_id) const override {
    return node.Find(write_id.key()) != nullptr ? Visibility::Visible() : Visibility::NotYet();
  }
};

class IgnoresEpochs : public memory::PositionShim {
 protected:
  void Proved(const memory::Node&, Server&) const override {}
  Visibility Judge(const memory::Node& node, const WriteId& write_id) const override {
    return write_id.ordered()->counter <= node.counter ? Visibility::Visible() : Visibility::NotYet();
  }
};

class BrokenUnderTest : public MemoryUnderTest {
 public:
  BrokenUnderTest(Versions versions, ShimType shim) : MemoryUnderTest(versions) { shim_ = std::move(shim); }
};

// A client's error is taken for a write that did not happen.
class ForgetsPending : public MemoryUnderTest {
 public:
  ForgetsPending() : MemoryUnderTest(Versions::kPosition) {}
  bool WriteWithUnknownOutcome(const std::string& key, const std::string& value) override {
    memory_->Put(key, value);
    return true;
  }
};

// A case is listed that passes, and one that there is not.
class HasStaleExceptions : public MemoryUnderTest {
 public:
  HasStaleExceptions() : MemoryUnderTest(Versions::kPosition) {}
  std::map<std::string, std::string> exceptions() const override {
    return {{"write", "it cannot"}, {"no_such_case", "it cannot"}};
  }
};

bool Fails(StoreUnderTest& store, const std::string& name) {
  return RunConformanceCase(store, name).kind == CaseOutcome::Kind::kFailed;
}

TEST(Conformance, CatchesBrokenShims) {
  BrokenUnderTest passes(Versions::kPosition, ShimType::Of<PassesAlways>("memory"));
  EXPECT_TRUE(Fails(passes, "partitioned_replica"));
  BrokenUnderTest keys(Versions::kObject, ShimType::Of<ComparesKeysOnly>("memory"));
  EXPECT_TRUE(Fails(keys, "old_version"));
  BrokenUnderTest epochs(Versions::kPosition, ShimType::Of<IgnoresEpochs>("memory"));
  EXPECT_TRUE(Fails(epochs, "promotion_with_lost_writes"));
  ForgetsPending pending;
  EXPECT_TRUE(Fails(pending, "unknown_outcome"));
  HasStaleExceptions stale;
  EXPECT_TRUE(Fails(stale, "write"));
  EXPECT_TRUE(Fails(stale, "exceptions_are_cases"));
  EXPECT_TRUE(Fails(stale, "no_such_case"));
}

}  // namespace
}  // namespace antipode::testing
