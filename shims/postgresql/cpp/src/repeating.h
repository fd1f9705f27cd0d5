// Reads in dry-run, sent again on a connection of our own (spec REC-14, REC-22).
#ifndef ANTIPODE_POSTGRESQL_SRC_REPEATING_H_
#define ANTIPODE_POSTGRESQL_SRC_REPEATING_H_

#include <libpq-fe.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "antipode/followed_read.h"
#include "statements.h"
#include "targets.h"

namespace antipode::postgresql {

// A statement and its parameters, as libpq's own calls take them: all of it is the caller's.
struct Sent {
  const char* text = nullptr;  // null where nobody knows it
  int count = 0;
  const Oid* types = nullptr;
  const char* const* values = nullptr;
  const int* lengths = nullptr;
  const int* formats = nullptr;
  int typed = kMostParameters;  // how many of them `types` speaks of

  static constexpr int kMostParameters = 65535;  // libpq refuses more
};

// The rows of a statement as octets, the same for the same rows in whatever order.
class RowOctets {
 public:
  // False where they are too many.
  bool Add(const PGresult* result);
  std::string Octets();

 private:
  std::vector<std::string> rows_;
  std::size_t size_ = 0;
};

// The reads of one wrapped connection.
class Repeating {
 public:
  explicit Repeating(PGconn* connection) : connection_(connection) {}

  // The application sends this, or will: its session may be another one from then on.
  void Says(Kind kind, const char* text) noexcept;
  // The connection is made anew, and has its settings of the beginning.
  void Reconnected() noexcept;
  // How a read is sent again, of which what was sent is copied; whether its text allows that is found out later, by who
  // does it. With nothing to repeat where it is not known what was sent, or means.
  FollowedRead::Came Of(const Sent& sent, std::chrono::nanoseconds timeout) noexcept;

 private:
  std::shared_ptr<const Target> OwnTarget();

  PGconn* const connection_;
  bool changed_ = false;                  // the application has changed its session
  std::shared_ptr<const Target> target_;  // null until it is asked for
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_REPEATING_H_
