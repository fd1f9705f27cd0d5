// What the tests share: one RabbitMQ for the run with a virtual host for each region, federated from A to B; queues,
// links.
#ifndef ANTIPODE_RABBITMQ_TESTS_REGION_H_
#define ANTIPODE_RABBITMQ_TESTS_REGION_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/antipode.h"
#include "antipode/memory.h"
#include "antipode/rabbitmq.h"
#include "antipode/testing/isolated.h"
#include "lab/lab.h"

namespace antipode::rabbitmq {

using namespace std::chrono_literals;

inline constexpr const char* kStore = "notifications";
inline constexpr const char* kExchange = "notifications";  // the lab's, federated from A to B
inline constexpr const char* kText = "1~blog..0-1.42";

// The lab of this program, started by the first test that needs it.
lab::Lab& TheLab();

// Whether a condition comes true in time.
bool Until(const std::function<bool()>& condition, std::chrono::milliseconds patience = 10s);

// Waits until the broker has said something that the connection has not read yet.
bool Heard(const Connection& connection);

// A name that nobody has used.
std::string NewName(const std::string& word);

using Headers = std::vector<std::pair<std::string, std::string>>;

// A message as rabbitmq-c itself gives it.
struct PlainMessage {
  std::string body;
  std::string routing_key;
  Headers headers;  // those that are texts
  std::string message_id;
  std::string properties;  // as they were on the wire
};

// A connection without Antipode.
class Plain {
 public:
  explicit Plain(const std::string& url);
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain();

  amqp_connection_state_t state() const { return state_; }
  void Declare(const std::string& queue, const Headers& arguments = {});
  void Bind(const std::string& queue, const std::string& exchange, const std::string& key = "");
  void DeclareExchange(const std::string& exchange, const std::string& kind);
  void Delete(const std::string& queue);
  void Purge(const std::string& queue);
  int Count(const std::string& queue);
  void Publish(const std::string& exchange, const std::string& key, const std::string& body,
               const Headers& headers = {}, const std::string& message_id = "");
  std::optional<PlainMessage> Take(const std::string& queue);
  // The next message of a queue; fails the test where none comes.
  PlainMessage Get(const std::string& queue);

 private:
  amqp_connection_state_t state_;
};

// A way of its own to a region's broker, which can be cut, or fall silent.
class Link {
 public:
  explicit Link(const std::string& region);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { Cut(); }

  const std::string& url() const { return url_; }
  void Cut();
  void Silence();  // connections stay open, and nothing comes through
  void HoldAnswers();  // what is sent arrives, and what the broker says does not
  void Heal();

 private:
  const std::string name_;
  std::string url_;
};

// One region's broker as a test uses it; queues of its own, which end with it.
class Region {
 public:
  explicit Region(const std::string& name) : name_(name) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  std::string url() const;
  Plain& own();
  Connection Wrapped(Options options = Options(kStore)) const;
  std::string Queue(const Headers& arguments = {});
  // A new exchange of this region alone, gone when its last queue is.
  std::string Exchange(const std::string& kind = "fanout");
  // A new tap at an exchange.
  Tap NewTap(const std::string& exchange, const std::string& routing_key = "#");
  // Deletes a queue at the end, or now.
  void Delete(const std::string& queue);

 private:
  const std::string name_;
  std::unique_ptr<Plain> own_;
  std::vector<std::string> queues_;
};

// A test in an Antipode of its own.
class RabbitTest : public ::testing::Test {
 protected:
  RabbitTest() { TheLab(); }
  ~RabbitTest() override { SetLogSink({}); }

  static WriteId BlogWrite() { return *WriteId::Position("blog", "0-1", 42); }
  static Lineage Message(const std::string& mark) {
    return Lineage(*WriteId::Make(kStore, "x", Opaque{mark}));
  }
  static BarrierResult Judge(const Lineage& lineage, std::chrono::duration<double> timeout = 5s) {
    return Barrier(lineage, BarrierOptions().Timeout(timeout).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed));
  }
  static Verdict VerdictOf(const Lineage& lineage, std::chrono::duration<double> timeout = 5s) {
    return Judge(lineage, timeout).store(kStore).verdict;
  }

  testing::Isolated isolated_;
  Region a_{"a"};
  Region b_{"b"};
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_TESTS_REGION_H_
