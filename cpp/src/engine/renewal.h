/// \file
/// The connections by which a server is asked: the next one stands before the last one ends (spec BAR-55, BAR-69).
///
/// To open a connection may take a second, and nobody is answered meanwhile. So it is opened on a thread of its own,
/// while the one that is there goes on answering. That lets no barrier pass that could not pass before:
///
/// 1. A connection may stay at a server to which its address leads no more. BAR-55 allows that for its time, which
///    begins with its opening: the address was looked up then. It never answers behind its time, whether the next one
///    stands or not; where that is late, whoever waits stands still. So it is of the next one, which may have stood
///    there for long when somebody asks again.
/// 2. When the next one stands, all that was proved is dropped before it is asked, as with any new connection (BAR-33):
///    it may lead to another server. One thread does both, between two questions: no answer of one counts as the
///    other's.
/// 3. That it cannot be opened is no silence of the server (BAR-26), which answers by the other one. Behind that one's
///    time the thread that asks opens a connection itself, and finds out whose fault it is (BAR-61).
#ifndef ANTIPODE_ENGINE_RENEWAL_H_
#define ANTIPODE_ENGINE_RENEWAL_H_

#include <any>
#include <memory>
#include <optional>
#include <vector>

#include "antipode/shim/server.h"
#include "base/time.h"
#include "engine/server_state.h"

namespace antipode {

/// The connection of a server's thread, and the next one. Used by that thread alone, but for `Join` and `AfterFork`.
class Renewal {
 public:
  Renewal(const Server& server, ServerState& state) noexcept : server_(server), state_(state) {}
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;
  ~Renewal();

  /// A question begins. Nothing where the connection that is there is to be asked; else that one is to be closed, and
  /// this session takes its place: where it is empty, one that the question opens.
  std::optional<std::any> Next();

  /// A question was answered, and took so long, the opening of its connection included.
  void Answered(Duration time) noexcept;

  /// The connection is closed: whoever is asked next, is asked by one that is opened then.
  void End() noexcept;

  /// Waits until no connection is being opened any more. Any thread, which does not hold the server's lock.
  void Join() noexcept;

  /// In the child of a fork: what was being opened is the parent's.
  void AfterFork();

 private:
  class Opening;
  using OpeningPtr = std::shared_ptr<Opening>;

  Duration Left(Duration life) const;
  OpeningPtr Begin();
  void JoinThoseThatAreOver();

  const Server& server_;
  ServerState& state_;
  std::optional<TimePoint> made_at_;  // when the connection that may be open began to be opened
  bool is_new_ = false;
  Duration question_time_{};  // by a question of late and its connection
  Duration opening_time_{};
  OpeningPtr next_;
  std::vector<OpeningPtr> begun_;  // those whose threads were not joined; guarded by the server's lock
};

}  // namespace antipode

#endif  // ANTIPODE_ENGINE_RENEWAL_H_
