// The memory store as the conformance kit drives it: the model for a shim's own.
#ifndef ANTIPODE_TESTS_ENGINE_MEMORY_UNDER_TEST_H_
#define ANTIPODE_TESTS_ENGINE_MEMORY_UNDER_TEST_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "antipode/memory.h"
#include "antipode/settings.h"
#include "antipode/testing/store_under_test.h"

namespace antipode::testing {

// Three regions in this process, made anew for each case.
class MemoryUnderTest : public StoreUnderTest {
 public:
  explicit MemoryUnderTest(Versions versions) : versions_(versions) {
    patience = std::chrono::seconds(30);
    brief = std::chrono::milliseconds(100);
  }

  Capabilities capabilities() const override { return MemoryShim(versions_).make()->capabilities(); }
  std::map<std::string, std::string> exceptions() const override {
    return {{"open_transaction", "the memory store has no transactions"},
            {"transaction_only_read_so_far", "the memory store has no transactions"},
            {"rolled_back_transaction", "the memory store has no transactions"},
            {"transaction_over_two_scopes", "the memory store has no transactions"},
            {"barrier_in_a_transaction", "the memory store has no transactions"},
            {"commit_inside_a_transaction", "the memory store has no transactions"},
            {"past_moment", "the memory store has no cursors and no snapshots"},
            {"address_that_moves", "the memory store's servers have no addresses"},
            {"missing_rights", "the memory store has no users"},
            {"unfit_topology", "the memory store has one topology"}};
  }
  std::string primary() const override { return primary_; }
  std::vector<std::string> replicas() const override { return {"b", "c"}; }

  void Begin() override {
    MemoryOptions options;
    options.name = name;
    options.regions = {"a", "b", "c"};
    options.lags = {{"b", std::chrono::milliseconds(5)}, {"c", std::chrono::milliseconds(20)}};
    options.versions = versions_;
    memory_ = std::make_unique<MemoryStore>(options);
    if (shim_) memory_->SetShim(*shim_);
    primary_ = "a";
    writes_ = 0;
    for (const std::string region : {"b", "c", "a"}) {
      clients_.insert_or_assign(
          region, memory_->Client(region, StoreOptions(name).ReplicaTargets(memory_->TargetsOf({"b", "c"}))));
    }
    SettingWords words;
    words.replica_out_after = std::chrono::milliseconds(200);
    Check(Configure(words).ok(), "configure");
  }
  void Recover(bool /*spoiled*/) override {}  // the next case makes a store of its own

  void Write(const std::string& key, const std::string& value) override {
    ++writes_;
    const MemoryReply reply = At(primary_).Set(key, value);
    Check(reply.ok(), reply.message);
  }
  std::optional<std::string> Look(const std::string& key, const std::string& at) override {
    return memory_->Look(at, key);
  }
  ReadUnderTest Read(const std::string& key, const std::string& at) override {
    MemoryReply reply = At(at).Get(key);
    Check(reply.ok() || reply.error, reply.message);
    return {reply.value, reply.error};
  }
  void Delete(const std::string& key) override {
    const MemoryReply reply = At(primary_).Delete(key);
    Check(reply.ok(), reply.message);
  }
  void RawWrite(const std::string& key, const std::string& value) override { memory_->Put(key, value); }
  void WriteNothing() override { Delete(NewKey("never there")); }

  void SetLag(const std::string& replica, std::chrono::nanoseconds lag) override { memory_->SetLag(replica, lag); }
  void Partition(const std::string& replica) override { memory_->Freeze(replica); }
  void Heal(const std::string& replica) override { memory_->Heal(replica); }
  void Freeze(const std::string& server) override { memory_->Stop(server); }
  void Thaw(const std::string& server) override { memory_->Restart(server); }
  void Restart(const std::string& server) override { memory_->Restart(server); }
  void Repoint(const std::string& replica, const std::string& source) override { memory_->Repoint(replica, source); }
  void Promote(const std::string& replica, const std::function<void()>& lost) override {
    const std::size_t before = writes_;
    if (lost) {
      for (const char* region : {"a", "b", "c"}) memory_->Freeze(region);
      lost();
    }
    memory_->Promote(replica, writes_ - before);
    primary_ = replica;
    for (const char* region : {"a", "b", "c"}) memory_->Heal(region);
  }
  void WaitMarked(const Lineage& /*lineage*/) override {
  }  // the new primary marks the end of the epoch before by itself

  std::unique_ptr<ClientUnderTest> WrapClient(const std::string& server,
                                              std::optional<std::vector<std::string>> replicas,
                                              bool wait_on_read) override {
    StoreOptions options = StoreOptions(name).WaitOnRead(wait_on_read);
    if (replicas) options.ReplicaTargets(memory_->TargetsOf(*replicas));
    return std::make_unique<OneMore>(memory_->Client(server, options));
  }

  bool WriteWithUnknownOutcome(const std::string& key, const std::string& value) override {
    memory_->LoseNextAnswer();
    return !At(primary_).Set(key, value).ok();
  }
  bool WriteRefused(const std::string& key) override { return !At(near()).Set(key, "v").ok(); }

 protected:
  MemoryClient& At(const std::string& region) { return clients_.at(region); }

  const Versions versions_;
  std::optional<ShimType> shim_;  // another one than the store's own, where a test has it
  std::unique_ptr<MemoryStore> memory_;

 private:
  class OneMore final : public ClientUnderTest {
   public:
    explicit OneMore(MemoryClient client) : client_(std::move(client)) {}
    WaysToRead Reads() override {
      return {{"Get", [this](const std::string& key) -> ReadUnderTest {
                 const MemoryReply reply = client_.Get(key);
                 return {reply.value, reply.error};
               }}};
    }

   private:
    MemoryClient client_;
  };

  std::map<std::string, MemoryClient> clients_;
  std::string primary_ = "a";
  std::atomic<std::size_t> writes_{0};
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENGINE_MEMORY_UNDER_TEST_H_
