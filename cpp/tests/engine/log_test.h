// A server of positions that says how far it is, and what tests of it share.
#ifndef ANTIPODE_TESTS_ENGINE_LOG_TEST_H_
#define ANTIPODE_TESTS_ENGINE_LOG_TEST_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/fakes.h"

namespace antipode::testing {

class LogShim : public FakeShim {
 public:
  Capabilities capabilities() const override { return Capabilities::Positions(); }
};

struct FakeLog {
  std::mutex mutex;
  std::string instance = "i1";
  std::string epoch = "e1";
  std::uint64_t applied = 0;

  void Move(std::uint64_t to) {
    const std::lock_guard<std::mutex> lock(mutex);
    applied = to;
  }
  void Become(std::string new_instance, std::string new_epoch, std::uint64_t to) {
    const std::lock_guard<std::mutex> lock(mutex);
    instance = std::move(new_instance);
    epoch = std::move(new_epoch);
    applied = to;
  }
  Answers Judge(Span<const WriteId> ids, Server& server) {
    const std::lock_guard<std::mutex> lock(mutex);
    server.Applied(instance, epoch, {{epoch, applied}});
    std::vector<Visibility> answers;
    for (const WriteId& id : ids) {
      if (id.ordered()->epoch != epoch) {
        answers.push_back(Visibility::UnknownEpoch("unknown"));
      } else if (id.ordered()->counter <= applied) {
        answers.push_back(Visibility::Visible());
      } else {
        answers.push_back(Visibility::NotYet("at " + std::to_string(applied)));
      }
    }
    return answers;
  }
};

class LogTest : public EngineTest {
 protected:
  LogTest() {
    fake_ =
        MakeFake("log-1", [log = log_](Span<const WriteId> ids, Server& server) { return log->Judge(ids, server); });
    store_ = MakeFakeStore<LogShim>("log", {fake_});
    server_ = store_->Servers().front();
  }

  static Lineage Upto(std::uint64_t counter, const std::string& epoch = "e1") {
    return Lineage(At("log", epoch, counter));
  }

  const std::shared_ptr<FakeLog> log_ = std::make_shared<FakeLog>();
  FakePtr fake_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Server> server_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENGINE_LOG_TEST_H_
