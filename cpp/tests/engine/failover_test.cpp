// The failover fuzzer on the memory store, with a sound shim and with ones that it has to catch (EPOCH-27).
#include "antipode/testing/failover.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "antipode/memory.h"
#include "memory/shim.h"

namespace antipode::testing {
namespace {

// Three servers in this process.
class MemoryDriver : public FailoverDriver {
 public:
  explicit MemoryDriver(const ShimType& shim) : memory_(Options()) {
    memory_.SetShim(shim);
    for (const std::string& region : servers()) clients_.insert_or_assign(region, memory_.Client(region));
  }

  std::vector<std::string> servers() const override { return {"a", "b", "c"}; }
  std::string primary() const override { return primary_; }
  std::vector<std::string> replicas() const override {
    std::vector<std::string> others;
    for (const std::string& region : servers()) {
      if (region != primary_) others.push_back(region);
    }
    return others;
  }
  std::string Address(const std::string& server) const override { return "/" + server; }

  void Write(const std::string& server, const std::string& key, const std::string& value) override {
    ++writes_;
    EXPECT_TRUE(clients_.at(server).Set(key, value).ok());
  }
  std::optional<bool> Shows(const std::string& server, const std::string& key, const std::string& value) override {
    return memory_.Look(server, key) == value;
  }
  std::optional<std::string> History(const std::string& server) override { return memory_.Instance(server); }

  void Lag(const std::string& replica, std::chrono::milliseconds lag) override { memory_.SetLag(replica, lag); }
  void Cut(const std::string& replica, Chance&) override { memory_.Freeze(replica); }
  void Heal(const std::string& replica, bool) override { memory_.Heal(replica); }
  void RestartReplica(const std::string& replica, const std::function<void()>& write, bool) override {
    memory_.Stop(replica);
    write();
    memory_.Restart(replica);
  }
  void Promote(const std::string& replica, const std::function<void()>& lost) override {
    const std::size_t before = writes_;
    if (lost) {
      for (const std::string& region : servers()) memory_.Freeze(region);
      lost();
    }
    memory_.Promote(replica, lost ? writes_ - before : 0);
    primary_ = replica;
    for (const std::string& region : servers()) memory_.Heal(region);
  }
  void Rejoin(const std::string&, bool) override { FAIL() << "every server follows the new primary by itself"; }
  void Calm() override {
    for (const std::string& region : servers()) {
      memory_.Heal(region);
      memory_.SetLag(region, {});
    }
  }
  void WaitCaughtUp() override {}  // without a lag they always are

 private:
  static MemoryOptions Options() {
    MemoryOptions options;
    options.name = "fuzz";
    options.regions = {"a", "b", "c"};
    options.lags = {{"b", std::chrono::milliseconds(2)}, {"c", std::chrono::milliseconds(10)}};
    return options;
  }

  MemoryStore memory_;
  std::map<std::string, MemoryClient> clients_;
  std::string primary_ = "a";
  std::size_t writes_ = 0;
};

MakeDriver With(const ShimType& shim) {
  return [shim](std::uint64_t) { return std::make_unique<MemoryDriver>(shim); };
}

// Takes the whole of an epoch that has ended for arrived.
class TrustsEndedEpochs : public memory::PositionShim {
 protected:
  void Proved(const memory::Node&, Server&) const override {}
  Visibility Judge(const memory::Node& node, const WriteId& write_id) const override {
    const Ordered& wanted = *write_id.ordered();
    return wanted.epoch != node.epoch || wanted.counter <= node.counter ? Visibility::Visible() : Visibility::NotYet();
  }
};

// Takes what is not there yet for lost.
class GivesUpEarly : public memory::PositionShim {
 protected:
  Visibility Judge(const memory::Node& node, const WriteId& write_id) const override {
    Visibility answer = memory::PositionShim::Judge(node, write_id);
    return answer.verdict == Verdict::kVisible ? answer : Visibility::Unproven("it may be lost");
  }
};

int Runs() {
  const char* runs = std::getenv("ANTIPODE_FUZZER_RUNS");
  return runs == nullptr ? 15 : std::atoi(runs);
}

TEST(Failover, RandomFailoversShowNoFalsePass) {
  const Tally tally = RunFailovers(With(MemoryShim(Versions::kPosition)), Runs(), 1);
  FailoverBounds bounds;
  bounds.most_unproven = 0.0;
  const Result<void> good = CheckTally(tally, bounds);
  EXPECT_TRUE(good.ok()) << good.error().message;
  std::printf("%s\n", tally.ToString().c_str());
}

void IsCaught(const ShimType& shim, std::vector<std::string> Tally::*found) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Tally tally = RunFailovers(With(shim), 1, seed);
    if ((tally.*found).empty()) continue;
    EXPECT_FALSE(CheckTally(tally).ok());
    return;
  }
  FAIL() << "it was not caught";
}

TEST(Failover, AShimThatTrustsEndedEpochsIsCaught) {
  IsCaught(ShimType::Of<TrustsEndedEpochs>("memory"), &Tally::lost_passed);
}

TEST(Failover, AShimThatGivesUpEarlyIsCaught) { IsCaught(ShimType::Of<GivesUpEarly>("memory"), &Tally::rash); }

}  // namespace
}  // namespace antipode::testing
