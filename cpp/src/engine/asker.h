/// \file
/// The thread that asks one server: when it asks, what it does with answers and failures (spec BAR-38).
#ifndef ANTIPODE_ENGINE_ASKER_H_
#define ANTIPODE_ENGINE_ASKER_H_

#include <any>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "antipode/shim/server.h"
#include "base/time.h"
#include "engine/pace.h"
#include "engine/renewal.h"
#include "engine/server_state.h"

namespace antipode {

class Asker {
 public:
  Asker(Server& server, ServerState& state) noexcept : server_(server), state_(state), renewal_(server, state) {}
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  /// Begins the thread where none runs; the server's lock is held.
  void Ensure();

  /// Whether it runs; the server's lock is held.
  bool Runs() const noexcept { return running_; }

  /// Makes the thread ask now. Any thread; no lock held.
  void Poke() noexcept;

  /// Whether somebody new waits whom the last question did not speak of.
  bool Poked() const noexcept { return poked_.load(std::memory_order_acquire); }

  /// The store's push: something was applied at this server. Any thread.
  void OnChange() noexcept;

  /// Ends the thread, and waits until it has.
  void End();

  /// In the child of a fork: there is no thread, and no channel.
  void AfterFork();

 private:
  /// What ended a sleep: somebody new waits, the server pushed, or neither.
  struct WakeReason {
    bool is_called;
    bool is_pushed;
  };

  void Run();
  bool Idle() const;
  bool NobodyWaits() const;
  bool Ended();
  void Wake() noexcept;
  void Turn(Pace& pace);
  void LookForLeave();
  TimePoint Due(const Pace& pace, Duration shortest);
  WakeReason Sleep(Duration duration);
  bool Round(bool wanted);
  std::optional<bool> Question(bool wanted);
  Answers Ask(const std::vector<WriteId>& ids, bool looked_at, bool hurried);
  void OpenWatch();
  void Refused(const std::string& words, UnprovenKind kind = UnprovenKind::kOther);
  void Reconnect();
  void Unanswered(const std::string& words, TimePoint asked_at);
  void Failed(const std::string& words, TimePoint asked_at);
  void TellFault(const char* words) noexcept;
  void CloseChannel();
  void Replace(std::any session);
  bool HasMoved(const std::string& epoch, std::uint64_t applied) const;

  Server& server_;
  ServerState& state_;
  std::unique_ptr<std::thread> thread_;  // guarded by the server's lock
  bool running_ = false;                 // likewise
  std::atomic<bool> ending_{false};
  std::atomic<int> wake_{-1};  // an eventfd, kept once it was made
  std::atomic<bool> poked_{false};
  std::atomic<bool> called_{false};  // somebody new waits
  std::atomic<bool> pushed_{false};
  // The thread's own:
  Renewal renewal_;
  std::unique_ptr<Watch> watch_;
  bool watchable_ = true;
  std::uint64_t known_under_ = ~std::uint64_t{0};  // the generation of the store's servers, when it was one of them
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_ASKER_H_
