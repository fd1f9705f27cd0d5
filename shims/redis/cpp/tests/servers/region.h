// One lab for the tests of this program: a primary "a", replicas "b1" and "b2"; and plain connections to them.
#ifndef ANTIPODE_REDIS_TESTS_REGION_H_
#define ANTIPODE_REDIS_TESTS_REGION_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/antipode.h"
#include "antipode/redis.h"
#include "antipode/testing/isolated.h"
#include "lab/lab.h"

namespace antipode::redis {

using namespace std::chrono_literals;

inline const std::string kStore = "blog-posts";

// The lab; it is started by the first test that asks, and ends with the program's tests.
lab::Lab& TheLab();

// Heals all links and makes "a" the primary again.
void RestoreOrder();

// Polls a condition, with a deadline.
bool Until(const std::function<bool()>& condition, std::chrono::seconds patience = 20s);

// A plain hiredis connection to a server of the lab; throws where there is none.
class Plain {
 public:
  explicit Plain(const std::string& server);
  explicit Plain(redisContext* context) : context_(context) {}
  // The reply; nothing where the connection broke.
  Reply Do(const std::vector<std::string>& words);
  std::optional<std::string> Get(const std::string& key);

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  std::unique_ptr<redisContext, Free> context_;
};

// What a Python program prints, run with the lab's URLs as arguments, and one more.
std::string Python(const std::string& program, const std::string& more = {});

redisContext* Connect(const std::string& server);
std::string Url(const std::string& server);

// The only position that a lineage has of the store; fails the test where there is none.
Ordered PositionOf(const Lineage& lineage, const std::string& store = kStore);

// A test in a registry of its own, on the lab's servers in their first order.
class PostsTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // A connection to a server, wrapped; region B's readers may use both replicas.
  Connection Wrapped(const std::string& server, Options options = Options(kStore));
  // Writes at the primary in a scope of its own; the lineage that it left.
  Lineage Written(Connection& at, const std::string& key, const std::string& value = "v");
  BarrierResult Look(const Lineage& lineage, std::chrono::milliseconds timeout = 5000ms);

  // How often the server has answered INFO; for the question's own cost.
  long long Questions(const std::string& server);

 private:
  testing::Isolated isolated_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_TESTS_REGION_H_
