// The questions that ride with a commit, and how they are sent on the application's own connection (spec EPOCH-1 to
// EPOCH-3).
#ifndef ANTIPODE_POSTGRESQL_SRC_PACKETS_H_
#define ANTIPODE_POSTGRESQL_SRC_PACKETS_H_

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session.h"

namespace antipode::postgresql {

// The timeline in force now: a connection lives on when its standby is promoted. Never the insert position alone: it
// may lie behind the next page's header, where no record ends, or behind what somebody else has not committed. It is
// asked for only as a bound for what was not flushed when it was read.
inline constexpr char kQuestion[] =
    "SELECT pg_walfile_name('0/1000000'), pg_current_wal_flush_lsn(), pg_current_wal_insert_lsn()";
// The name of kQuestion as a prepared statement.
inline constexpr char kPreparedQuestion[] = "_antipode_question";
// Before the COMMIT: what SET LOCAL said is gone after it. A held cursor writes in the commit what its query writes.
inline constexpr char kHow[] = "SHOW synchronous_commit";
inline constexpr char kHowAndWhether[] =
    "SELECT current_setting('synchronous_commit'), pg_current_xact_id_if_assigned() IS NOT NULL OR EXISTS"
    " (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable AND creation_time >= pg_catalog.transaction_timestamp())";
// A commit of nothing, flushed: everything before it in the log is flushed then. It waits for no standby: the
// application's own commit did, or was told not to (SHIM-2).
inline constexpr char kFlush[] =
    "SELECT set_config('synchronous_commit', 'local', true), pg_logical_emit_message(true, 'antipode', '')";

using Results = std::vector<OwnResult>;

// An answer to kQuestion.
struct Place {
  std::uint32_t timeline = 0;
  std::uint64_t position = 0;  // flushed up to here
  std::uint64_t inserted = 0;  // written up to here, or to behind the next page's header

  // False at the start of a page: a record may only be flushed up to there, and be waited for in vain.
  bool Certain(std::uint64_t segment) const;
};

// The place in the last of these results; nothing where it is no answer.
std::optional<Place> PlaceOf(const Results& results);

// The end of the last record before an insert position, which may already lie behind the next page's header.
std::uint64_t RecordEnd(std::uint64_t inserted, std::uint64_t segment);

// The server's words where it refused; empty where it did not.
std::string RefusalOf(const Results& results);

// Whether the server refused because it has no prepared statement of that name (`DISCARD ALL` forgets them).
bool IsUnknownStatement(const Results& results);

// Whether the server stopped for a time limit, or because it was told to.
bool IsCancelled(const Results& results);

// Whether the server has the statement now, or had it before.
bool IsPrepared(const Results& results);

// Whether this error is the last word of its server process: what it was told before may have happened.
bool EndsConnection(const PGresult* result);

std::string_view ValueOf(const PGresult* result, int column);

// How long an answer may take. What has not come by then never will: its connection is closed (SHIM-47).
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// The results of one command. A broken connection has one error to tell.
Results AllOf(PGconn* connection, Deadline deadline = {});

// Sends one message of the simple protocol; the results of its statements, as far as they came.
Results Simple(PGconn* connection, const std::string& text, Deadline deadline = {});

using Send = std::function<int()>;

// What came back from `Piped`; less than was asked for where the connection broke.
struct Answers {
  std::vector<Results> commands;  // the results of each command, in order
  std::vector<Results> ends;      // per group the errors of its end: there it is committed, which may fail
};

// Sends commands in one packet, each group a transaction of its own.
Answers Piped(PGconn* connection, const std::vector<std::vector<Send>>& groups, Deadline deadline = {});

// A command of `Piped`: a statement without parameters.
Send Asked(PGconn* connection, const char* text);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_PACKETS_H_
