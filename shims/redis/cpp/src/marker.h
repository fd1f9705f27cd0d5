// Writes marks, in a thread of its own a server: never on the path of a request (spec EPOCH-16 to EPOCH-21).
//
// When an epoch is first met; at most once a second while there are writes; once within a second after the last one;
// and where a connection to a primary is held and nobody writes, in a new epoch as well.
#ifndef ANTIPODE_REDIS_MARKER_H_
#define ANTIPODE_REDIS_MARKER_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "antipode/write_id.h"
#include "probe.h"
#include "session.h"
#include "target.h"

namespace antipode::redis {

// Marks one store's epochs at one server, for all connections of this process that reach it.
class Marker : public std::enable_shared_from_this<Marker> {
 public:
  static std::shared_ptr<Marker> Make(std::string store, Target target, std::string key);
  Marker(const Marker&) = delete;
  Marker& operator=(const Marker&) = delete;

  // What was found out about the server; null until it has been reached.
  std::shared_ptr<const Facts> facts() const;
  void set_facts(Facts facts);
  const Target& target() const { return target_; }

  // A write of this process got this position.
  void Wrote(const Ordered& position);

  // A wrapped connection is there, or gone: while one is, a new epoch is marked without a write.
  void AddUser();
  void RemoveUser();

  // The process ends: one mark, if there is something to mark, within a moment.
  void LastMark();
  // Ends the thread (the store is forgotten).
  void Stop();

  // Forks: the thread and its connection stay with the parent.
  void BeforeFork() { mutex_.lock(); }
  void AfterForkInParent() { mutex_.unlock(); }
  void AfterForkInChild();

 private:
  using Clock = std::chrono::steady_clock;
  using Nanoseconds = std::chrono::nanoseconds;
  enum class Word { kMarked, kCovered, kWait, kReplica, kBacklog };
  struct Said {
    Word word = Word::kMarked;
    std::chrono::milliseconds wait{};
  };

  Marker(std::string store, Target target, std::string key);
  void Start(std::unique_lock<std::mutex>& lock);
  void Run();
  SessionReply<Nanoseconds> Step(std::unique_lock<std::mutex>& lock);
  SessionReply<Said> Mark(Session& session, const std::optional<Ordered>& position, std::chrono::milliseconds period);
  Nanoseconds Refused(const Failure& failure);

  const std::string store_;
  const Target target_;
  const std::string key_;

  mutable std::mutex mutex_;
  std::unique_ptr<std::condition_variable> changed_;
  std::shared_ptr<const Facts> facts_;
  std::optional<Ordered> position_;  // the last one that this process has written
  std::string epoch_;                // of the last position that woke the thread
  bool dirty_ = false;
  bool woken_ = false;
  bool running_ = false;
  bool stepping_ = false;
  bool ended_ = false;
  int users_ = 0;
  std::shared_ptr<Session> session_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_MARKER_H_
