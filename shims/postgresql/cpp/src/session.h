// Our own connection to one server, every call bounded by a timeout.
#ifndef ANTIPODE_POSTGRESQL_SRC_SESSION_H_
#define ANTIPODE_POSTGRESQL_SRC_SESSION_H_

#include <libpq-fe.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/verdict.h"
#include "targets.h"

namespace antipode::postgresql {

// The server does not answer, or not in time. Thrown inside this shim alone.
struct UnreachableError {
  std::string words;
};

// The server's own answer to a question: an error. Thrown inside this shim alone.
struct RefusedError {
  std::string words;
  UnprovenKind kind = UnprovenKind::kOther;
};

using Value = std::optional<std::string>;
using Row = std::vector<Value>;
using Rows = std::vector<Row>;

struct FinishConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using OwnConnection = std::unique_ptr<PGconn, FinishConnection>;
using OwnResult = std::unique_ptr<PGresult, ClearResult>;

// The first line of a server's or libpq's words.
std::string FirstLine(const char* words);

// One connection, used by one thread at a time. Every call ends within the timeout, or throws Unreachable; an error of
// the server is Refused.
class Session {
 public:
  using Timeout = std::chrono::nanoseconds;

  // Connects. No server-side cursor, transaction or setting outlives a call.
  Session(const Target& target, Timeout timeout, const std::map<std::string, std::string>& more = {});

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Ends the connection; in the child of a fork, whose it is not, without a word to the server (SCOPE-13).
  ~Session();

  void set_timeout(Timeout timeout) { timeout_ = timeout; }

  // The process id that the server (or a pooler before it) gave for this connection.
  int backend() const { return PQbackendPID(connection_.get()); }

  // Sends one or more statements in one message; the rows of the last.
  Rows Run(const std::string& statement);

  // Prepares a statement: it is on our own connection, so nobody else meets it.
  void Prepare(const char* name, const char* statement);

  // The one row of a prepared statement without parameters.
  Row Prepared(const char* name);

  // The one row of the last statement.
  Row One(const std::string& statement);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void Sent(int done) const;
  Rows Finish();
  void Await(bool writes, TimePoint deadline, const char* what) const;

  Timeout timeout_;
  const int process_;
  OwnConnection connection_;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_SESSION_H_
