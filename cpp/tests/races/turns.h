// Two threads that do something at once, again and again, with little between them.
#ifndef ANTIPODE_TESTS_RACES_TURNS_H_
#define ANTIPODE_TESTS_RACES_TURNS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <thread>

namespace antipode::testing {

// The caller and a thread of this one's own. Who is first, and by how much, is drawn.
class Turns {
 public:
  explicit Turns(std::uint32_t seed) : chance_(seed), other_([this] { Follow(); }) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns() {
    second_ = nullptr;
    begun_.fetch_add(1, std::memory_order_release);
    other_.join();
  }

  // Runs both at once, and returns when both have ended.
  void Run(const std::function<void()>& first, const std::function<void()>& second) {
    second_ = &second;
    const std::uint32_t pause = Drawn();
    other_pause_ = Drawn();
    const std::uint64_t turn = begun_.fetch_add(1, std::memory_order_acq_rel) + 1;
    Pause(pause);
    first();
    Await(ended_, turn);
  }

 private:
  static constexpr int kPatience = 2'000;  // looks until the other one may need this one's processor

  static void Pause(std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  static void Await(const std::atomic<std::uint64_t>& number, std::uint64_t reached) {
    for (int looks = 0; number.load(std::memory_order_acquire) < reached; ++looks) {
      if (looks > kPatience) std::this_thread::yield();
    }
  }

  // Mostly short, at times as long as what is done.
  std::uint32_t Drawn() { return static_cast<std::uint32_t>(chance_() % (1U << chance_() % 13)); }

  void Follow() {
    for (std::uint64_t turn = 1;; ++turn) {
      Await(begun_, turn);
      if (second_ == nullptr) return;
      Pause(other_pause_);
      (*second_)();
      ended_.store(turn, std::memory_order_release);
    }
  }

  std::minstd_rand chance_;
  const std::function<void()>* second_ = nullptr;
  std::uint32_t other_pause_ = 0;
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> ended_{0};
  std::thread other_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_RACES_TURNS_H_
