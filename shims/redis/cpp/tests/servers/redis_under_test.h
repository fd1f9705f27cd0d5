// Redis as the conformance kit drives it: a lab of a primary and two replicas, set in order again after the cases that
// spoil it.
#ifndef ANTIPODE_REDIS_TESTS_REDIS_UNDER_TEST_H_
#define ANTIPODE_REDIS_TESTS_REDIS_UNDER_TEST_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "antipode/testing/store_under_test.h"
#include "region.h"

namespace antipode::redis {

class RedisUnderTest : public testing::StoreUnderTest {
 public:
  RedisUnderTest();
  ~RedisUnderTest() override;

  Capabilities capabilities() const override;
  std::map<std::string, std::string> exceptions() const override {
    return {{"past_moment", "Redis has no cursor and no snapshot that shows a moment from before"},
            {"commit_inside_a_transaction", "EXEC alone commits what a MULTI holds, and ends it"}};
  }
  std::string primary() const override { return primary_; }
  std::vector<std::string> replicas() const override { return {"b1", "b2"}; }
  void Begin() override;
  void Recover(bool spoiled) override;

  void Write(const std::string& key, const std::string& value) override;
  std::optional<std::string> Look(const std::string& key, const std::string& at) override;
  testing::ReadUnderTest Read(const std::string& key, const std::string& at) override;
  void Delete(const std::string& key) override;
  void RawWrite(const std::string& key, const std::string& value) override;
  void WriteNothing() override;
  std::unique_ptr<testing::ClientUnderTest> WrapClient(const std::string& server,
                                                       std::optional<std::vector<std::string>> replicas,
                                                       bool wait_on_read) override;
  int PortOf(const std::string& server) override;
  void RegisterAt(const std::string& server, int port) override;
  void Transaction(const std::function<bool(testing::TransactionUnderTest& transaction)>& work) override;

  void SetLag(const std::string& replica, std::chrono::nanoseconds lag) override;
  void Partition(const std::string& replica) override;
  void Heal(const std::string& replica) override;
  void Freeze(const std::string& server) override;
  void Thaw(const std::string& server) override;
  void Restart(const std::string& server) override;
  void Repoint(const std::string& replica, const std::string& source) override;
  void Promote(const std::string& replica, const std::function<void()>& lost) override;
  void WaitMarked(const Lineage& lineage) override;

  bool WriteWithUnknownOutcome(const std::string& key, const std::string& value) override;
  bool WriteRefused(const std::string& key) override;
  Result<void> WriteWithoutRights(const std::string& key, const std::string& value) override;
  Result<void> WrapUnfit() override;

 private:
  // A wrapped connection to a server, which is nobody else's for the time being; it connects anew where it broke.
  class Borrowed {
   public:
    Borrowed(RedisUnderTest& from, const std::string& server);
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed();
    Connection* operator->() const { return connection_.get(); }

   private:
    RedisUnderTest& from_;
    const std::string server_;
    std::unique_ptr<Connection> connection_;
  };

  std::string primary_ = "a";
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<Connection>>> free_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_TESTS_REDIS_UNDER_TEST_H_
