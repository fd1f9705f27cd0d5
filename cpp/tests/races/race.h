// A barrier at servers whose threads are the test's own, and what is true of it (BAR-32, BAR-63; spec/tla/Reopen.tla).
#ifndef ANTIPODE_TESTS_RACES_RACE_H_
#define ANTIPODE_TESTS_RACES_RACE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "antipode/shim/server.h"
#include "antipode/store.h"
#include "engine/need.h"

namespace antipode::testing {

class Race;

// One of its servers: it has the write, and is led to other data at times.
struct RaceServer {
  Race* race = nullptr;
  std::shared_ptr<Server> server;
  // How often its data were replaced, and whether they are just being.
  int data = 0;
  bool replacing = false;
  // Which of them showed the write last: these, or those of after a replacement that was under way.
  int shown_from = -1;
  int shown_to = -1;
};

class Race {
 public:
  explicit Race(Store& store);
  ~Race();
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  // What happens

  // Parks it at each server, as its caller does.
  void Park();
  // Asks a server, as its thread does.
  void Ask(std::size_t which);
  // Has a server be led to other data, and say so.
  void Replace(std::size_t which);
  // What its caller does when he is woken, or the deadline has come.
  void GiveUp();
  // What its caller does when it is cancelled.
  void Cancel();

  // A server's answer: the shim.
  void Show(RaceServer& server);

  // Goes on as the servers' threads do, until all is said. What may never be; empty where nothing was.
  std::string Judge();

 private:
  bool IsPassed() const;
  void Wake();
  bool Stood();

  std::vector<RaceServer> servers_{2};
  const std::shared_ptr<WaitGroup> group_;
  std::mutex truth_;
  bool stood_ = false;  // there was an instant at which each had shown the write of the data that it had then
  bool over_ = false;
  bool forgotten_ = false;
  std::atomic<int> wakings_{0};
  std::atomic<bool> never_stood_{false};  // somebody was told that it passes, and it had not stood
};

// The store of the races: its servers are each race's own.
std::shared_ptr<Store> MakeRaceStore();

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_RACES_RACE_H_
