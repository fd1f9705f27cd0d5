// Brokers that crash, come back, or come back empty, on two brokers of their own: no barrier passes for a message that
// has not arrived, and none takes longer than its deadline (BAR-11, BAR-28, SHIM-15, SHIM-20).
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "region.h"

namespace antipode::rabbitmq {
namespace {

constexpr const char* kQueue = "test.arrived";

// What the queue in B gives, through its restarts, to somebody who knows no lineage: the truth about arrival.
class Truth {
 public:
  explicit Truth(std::string url) : url_(std::move(url)), thread_([this] { Run(); }) {}
  Truth(const Truth&) = delete;
  Truth& operator=(const Truth&) = delete;
  ~Truth() {
    ends_ = true;
    thread_.join();
  }

  bool Has(const std::string& body) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return arrived_.count(body) != 0;
  }
  bool begun() const { return begun_; }

 private:
  void Run() {
    while (!ends_) {
      try {
        Plain plain(url_);
        plain.Declare(kQueue);
        plain.Bind(kQueue, kExchange);
        begun_ = true;
        while (!ends_) {
          const auto message = plain.Take(kQueue);
          if (message) {
            const std::lock_guard<std::mutex> lock(mutex_);
            arrived_.insert(message->body);
          } else {
            std::this_thread::sleep_for(10ms);
          }
        }
      } catch (const std::runtime_error&) {
        std::this_thread::sleep_for(50ms);
      }
    }
  }

  const std::string url_;
  mutable std::mutex mutex_;
  std::set<std::string> arrived_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> begun_{false};
  std::thread thread_;
};

class RestartsTest : public ::testing::Test {
 protected:
  std::string Url(const std::string& region) { return lab_.server("rabbitmq", region).url; }

  Verdict Judge(const std::string& body, std::chrono::duration<double> timeout) {
    const auto begun = std::chrono::steady_clock::now();
    const BarrierResult result = Barrier(
        sent_.at(body), BarrierOptions().Timeout(timeout).OnTimeout(Policy::kProceed).OnUnproven(Policy::kProceed));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    EXPECT_LT(took.count(), timeout.count() + 3) << "a barrier hangs";
    return result.store(kStore).verdict;
  }

  // Persistent and confirmed messages.
  std::vector<std::string> Publish(int count) {
    // It only writes at A's broker: readers are where the tap is (BAR-22), which a restart may lose.
    auto mq = Connect(Url("a"), Options(StoreOptions(kStore).WhenUnfit(OnUnfit::kUnproven)).Track().Taps(taps_));
    EXPECT_TRUE(mq.ok() && mq->ConfirmSelect(1).ok());
    amqp_basic_properties_t durable{};
    durable._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
    durable.delivery_mode = 2;
    std::vector<std::string> bodies;
    for (int number = 0; number < count; ++number) {
      const std::string body = NewName("body");
      const Scope scope;
      EXPECT_EQ(mq->BasicPublish(1, kExchange, "", body, &durable).outcome(), Outcome::kConfirmed);
      sent_[body] = scope.lineage();
      bodies.push_back(body);
    }
    return bodies;
  }

  void Check(const Truth& truth, const std::vector<std::string>& bodies, bool all_arrive) {
    for (const std::string& body : bodies) {
      if (Judge(body, 200ms) != Verdict::kVisible) continue;
      EXPECT_TRUE(Until([&] { return truth.Has(body); }, 20s)) << "a false pass: " << body;
    }
    for (const std::string& body : bodies) {
      if (!all_arrive) continue;
      EXPECT_TRUE(Until([&] { return Judge(body, 2s) == Verdict::kVisible; }, 60s)) << body;
    }
  }

  testing::Isolated isolated_;
  lab::Lab lab_{{"rabbitmq"}, lab::Options{1, {"0ms"}, {}}};
  std::vector<Tap> taps_;
  std::map<std::string, Lineage> sent_;
};

TEST_F(RestartsTest, NoRestartMakesABarrierPassFalselyOrHang) {
  const Truth truth(Url("b"));
  ASSERT_TRUE(Until([&] { return truth.begun(); }));
  {
    auto mq = Connect(Url("b"), Options("set-up"));
    ASSERT_TRUE(mq.ok());
    const Reply declared = DeclareTap(*mq, 1, kExchange);
    ASSERT_TRUE(declared.ok()) << declared.words();
    taps_.push_back({Url("b"), declared.words()});
  }
  ASSERT_TRUE(Register(Options(kStore).Taps(taps_)).ok());
  lab_.Do("rabbitmq", "wait_probe", {kExchange});
  const std::vector<std::string> first = Publish(20);
  Check(truth, first, true);
  lab_.Restart("rabbitmq", "b");  // in order first: 3.10 loses a stream that was declared seconds before a crash
  Check(truth, Publish(20), true);
  lab_.Restart("rabbitmq", "b", "", true);
  Check(truth, Publish(20), true);
  lab_.Partition("rabbitmq", "b");
  const std::vector<std::string> held = Publish(10);
  for (const std::string& body : held) EXPECT_EQ(Judge(body, 50ms), Verdict::kTimedOut);
  lab_.Restart("rabbitmq", "a", "", true, false);
  lab_.Heal("rabbitmq");
  Check(truth, held, true);
  lab_.Restart("rabbitmq", "b", "nothing");
  Check(truth, Publish(10), false);
  EXPECT_NE(Judge(first.front(), 500ms), Verdict::kTimedOut);  // arrived stays arrived, or nobody can tell
  {
    auto mq = Connect(Url("b"), Options("set-up"));
    ASSERT_TRUE(mq.ok());
    ASSERT_TRUE(DeclareTap(*mq, 1, kExchange).ok());
  }
  lab_.Do("rabbitmq", "wait_probe", {kExchange});
  Check(truth, Publish(10), true);
}

}  // namespace
}  // namespace antipode::rabbitmq
