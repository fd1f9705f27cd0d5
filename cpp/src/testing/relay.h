/// \file
/// An address that comes to lead elsewhere, as a floating address does (spec BAR-55).
#ifndef ANTIPODE_SRC_TESTING_RELAY_H_
#define ANTIPODE_SRC_TESTING_RELAY_H_

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace antipode::testing {

/// A port of the loopback interface that leads to another one. New connections go where it leads now, open ones stay
/// where they are. They can be held back: then they are open, and nothing comes through.
class Relay {
 public:
  explicit Relay(int leads_to);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  int port() const { return port_; }
  void Lead(int to) { leads_to_.store(to); }
  void Hold(bool value) { holds_.store(value); }
  /// How many connections were opened.
  int opened() const { return opened_.load(); }

 private:
  void Accept();
  static void Carry(int from, int to);

  std::atomic<int> leads_to_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> holds_{false};
  std::atomic<int> opened_{0};
  int listens_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread accepts_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_SRC_TESTING_RELAY_H_
