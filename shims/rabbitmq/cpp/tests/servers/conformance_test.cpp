// The conformance kit on real brokers: tracked messages from region A, and two taps that see them arrive in B (SHIM-18,
// SHIM-33).
#include "antipode/testing/conformance.h"

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "region.h"

namespace antipode::rabbitmq {
namespace {

constexpr const char* kNoFailover = "brokers of two regions are parted by federation: none takes the other's place";
constexpr const char* kOwnBrokers =
    "both regions are one broker here, which all tests share; restarts_test.cpp restarts two of its own";

std::string Milliseconds(std::chrono::nanoseconds lag) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(lag).count()) + "ms";
}

class InTransaction final : public testing::TransactionUnderTest {
 public:
  explicit InTransaction(Connection& mq) : mq_(mq) {}
  void Read(const std::string&) override {}  // taking a message is no write
  void Write(const std::string& key, const std::string& value) override {
    testing::StoreUnderTest::Check(mq_.BasicPublish(1, kExchange, "", key + "=" + value).ok(), "basic.publish");
  }

 private:
  Connection& mq_;
};

// Servers: the broker in A, and in B a tap that is read straight and one through a link of its own.
class RabbitUnderTest final : public testing::StoreUnderTest {
 public:
  RabbitUnderTest() {
    patience = 30s;
    rights_cure = "set_permissions";
    unfit_cure = "no stream queue";
    TheLab().Do("rabbitmq", "heal");
    oracle_ = b_.Queue();
    b_.own().Bind(oracle_, kExchange);
    for (const std::string& url : {b_.url(), link_.url()}) taps_.push_back({url, b_.NewTap(kExchange).queue});
    TheLab().Do("rabbitmq", "wait_probe", {kExchange});
  }
  ~RabbitUnderTest() override {
    b_.own().Purge(kExchange);
  }  // the lab's own queue of that name got all that was published

  Capabilities capabilities() const override {
    return Capabilities::Opaques().Push(true).RestsIn({Rest::kNative}).Tap(true);
  }
  std::map<std::string, std::string> exceptions() const override {
    return {{"promotion", kNoFailover},
            {"promotion_with_lost_writes", kNoFailover},
            {"second_promotion", kNoFailover},
            {"parked_across_a_promotion", kNoFailover},
            {"repointed_replica", kNoFailover},
            {"restarted_replica", kOwnBrokers},
            {"restarted_primary", kOwnBrokers}};
  }
  std::string primary() const override { return "a"; }
  std::vector<std::string> replicas() const override { return {"b", "b through a link"}; }

  void Begin() override {
    const Result<void> registered = Register(Options(name).Taps(taps_));
    Check(registered.ok(), registered.ok() ? "" : registered.error().message);
    free_.push_back(Borrow());  // a wrap in the middle of a case would list the taps anew
  }
  void Recover(bool /*spoiled*/) override {
    free_.clear();
    link_.Heal();
    TheLab().Lag("rabbitmq", "b", "10ms");
    TheLab().Do("rabbitmq", "heal");
  }

  void Write(const std::string& key, const std::string& value) override {
    std::unique_ptr<Connection> mq = Borrow();
    const Published published = mq->BasicPublish(1, kExchange, "", key + "=" + value);
    Check(published.outcome() == Outcome::kConfirmed, published.reply().words());
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(mq));
  }
  std::optional<std::string> Look(const std::string& key, const std::string& /*at*/) override {
    const std::lock_guard<std::mutex> lock(looking_);
    while (const auto message = b_.own().Take(oracle_)) {
      const std::size_t equals = message->body.find('=');
      if (equals != std::string::npos) arrived_[message->body.substr(0, equals)] = message->body.substr(equals + 1);
    }
    const auto found = arrived_.find(key);
    return found == arrived_.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  void Transaction(const std::function<bool(testing::TransactionUnderTest&)>& work) override {
    Connection mq = a_.Wrapped(Tracked());
    Check(mq.TxSelect(1).ok(), "tx.select");
    InTransaction transaction(mq);
    const bool commits = work(transaction);
    Check((commits ? mq.TxCommit(1) : mq.TxRollback(1)).ok(), "the transaction's end");
  }

  testing::WaysToWrite CommitsInside() override {
    return {{"TxCommit", [this](const std::string& key, const std::string& value) {
               Connection mq = a_.Wrapped(Tracked());
               Check(mq.TxSelect(1).ok(), "tx.select");
               InTransaction(mq).Write(key, value);
               Check(mq.TxCommit(1).ok() && mq.TxRollback(1).ok(), "a commit, and a rollback behind it");
             }}};
  }

  void SetLag(const std::string&, std::chrono::nanoseconds lag) override {
    TheLab().Lag("rabbitmq", "b", Milliseconds(lag));
  }
  void Partition(const std::string&) override { TheLab().Partition("rabbitmq", "b"); }
  void Heal(const std::string&) override { TheLab().Heal("rabbitmq", "b", false); }
  void Freeze(const std::string& server) override {
    Check(server == far(), "only the far one is frozen");
    link_.Silence();
  }
  void Thaw(const std::string&) override { link_.Heal(); }

  bool WriteWithUnknownOutcome(const std::string& key, const std::string& value) override {
    Link link("a");
    auto mq = Connect(link.url(), Tracked());
    Check(mq.ok() && mq->ConfirmSelect(1).ok(), "a connection");
    link.Silence();
    std::thread cut([&] {
      std::this_thread::sleep_for(300ms);
      link.Cut();
    });
    const Published lost = mq->BasicPublish(1, kExchange, "", key + "=" + value);
    cut.join();
    return lost.outcome() == Outcome::kUnknown;
  }
  bool WriteRefused(const std::string& key) override {
    const auto mq = Borrow();
    return mq->BasicPublish(1, "", "no-such-queue-" + key, "", nullptr, true).outcome() == Outcome::kReturned;
  }
  Result<void> WriteWithoutRights(const std::string&, const std::string&) override {
    std::string url = b_.url();
    url.replace(url.find("guest:guest"), 11, "publisher:publisher");
    return Register(Options(name).Taps({{url, taps_[0].queue}}));
  }
  Result<void> WrapUnfit() override { return Register(Options(name).Taps({{b_.url(), b_.Queue()}})); }

 private:
  // It only writes at A's broker: readers are where the taps are (BAR-22).
  Options Tracked() const { return Options(name).Track().Taps(taps_); }

  // A connection that is nobody else's for the time being.
  std::unique_ptr<Connection> Borrow() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        auto found = std::move(free_.back());
        free_.pop_back();
        return found;
      }
    }
    auto made = std::make_unique<Connection>(a_.Wrapped(Tracked()));
    Check(made->ConfirmSelect(1).ok(), "confirm.select");
    return made;
  }

  Region a_{"a"};
  Region b_{"b"};
  Link link_{"b"};
  std::string oracle_;
  std::vector<Tap> taps_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_;
  std::mutex looking_;
  std::map<std::string, std::string> arrived_;
};

std::unique_ptr<testing::StoreUnderTest> MakeRabbit() { return std::make_unique<RabbitUnderTest>(); }

ANTIPODE_SHIM_CONFORMANCE(RabbitMQ, MakeRabbit);

}  // namespace
}  // namespace antipode::rabbitmq
