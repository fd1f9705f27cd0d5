/// \file
/// Antipode's PostgreSQL shim: libpq connections whose commits join the request's lineage, and barriers for standbys.
///
///     auto orders = antipode::postgresql::Wrap(PQconnectdb("host=a dbname=shop"), {"orders"});
///     orders->Exec("BEGIN");
///     orders->Exec("INSERT INTO orders VALUES (42)");
///     orders->Exec("COMMIT");                              // joins the scope: the question rides in its message
///
///     antipode::postgresql::Register(antipode::StoreOptions("orders").Replicas({"postgresql://b1/shop"}));
///     antipode::BarrierResult there = antipode::Barrier();  // waits for it
#ifndef ANTIPODE_POSTGRESQL_H_
#define ANTIPODE_POSTGRESQL_H_

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/site.h"
#include "antipode/store.h"

namespace antipode ANTIPODE_EXPORT {
namespace postgresql {

/// What becomes of a commit with `synchronous_commit = off`, which a crash may lose.
enum class AsyncCommits {
  kFlush,       ///< A small commit behind it is flushed, and its position recorded.
  kIncomplete,  ///< No position is given: the lineage is incomplete for the store.
};

/// What `Wrap` and `Register` take: every store's options, and PostgreSQL's own.
struct Options {
  // NOLINTNEXTLINE(google-explicit-constructor): a name alone is what most wraps say.
  Options(const char* name) : store(name) {}
  Options(std::string name) : store(std::move(name)) {}         // NOLINT
  Options(StoreOptions options) : store(std::move(options)) {}  // NOLINT

  StoreOptions store;
  AsyncCommits async_commits = AsyncCommits::kFlush;
  /// Your word that all servers share one archive of the log, so that two standbys promoted apart never take one
  /// timeline number; for stores without the table of epochs.
  bool unique_timelines = false;
  /// Your word that a server that crashed is rebuilt before it serves readers: then servers with fsync or
  /// full_page_writes off are taken (SHIM-45).
  bool relaxed_durability = false;

  Options& CommitsWithoutFlush(AsyncCommits value) {
    async_commits = value;
    return *this;
  }
  Options& UniqueTimelines(bool value = true) {
    unique_timelines = value;
    return *this;
  }
  Options& RelaxedDurability(bool value = true) {
    relaxed_durability = value;
    return *this;
  }
};

/// What a call gave: libpq's own result, which ends with this object.
///
/// Where a read waited in vain (`wait_on_read`, `Reading` with `after`) nothing was sent: `error()` says why and
/// `get()` is null, which libpq's functions take for a failed result.
class [[nodiscard]] Reply {
 public:
  Reply() = default;
  explicit Reply(PGresult* result) : result_(result) {}
  explicit Reply(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}

  /// libpq's result: for `PQntuples(reply.get())` and the like.
  PGresult* get() const noexcept { return result_.get(); }
  /// libpq's result, which is the caller's to clear.
  PGresult* Release() noexcept { return result_.release(); }
  /// `PQresultStatus`.
  ExecStatusType status() const noexcept { return PQresultStatus(result_.get()); }
  /// Why nothing was sent; null where something was.
  const Error* error() const noexcept { return error_.get(); }

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
  std::shared_ptr<const Error> error_;
};

/// A connection whose writes join the current scope. Its methods are libpq's functions of the same names, with their
/// arguments, results and errors; like a `PGconn` it is used by one thread at a time.
///
/// A write is pending from its first statement that may write until its end is known. Where a position cannot ride in
/// the same packet (COPY, asynchronous calls, pipeline mode) it is asked for, in one blocking round trip, when libpq
/// says that the command is over: by the null of `GetResult`, or by a pipeline's synchronisation point after which
/// nothing is on its way.
class Connection {
 public:
  class Inside;
  explicit Connection(std::unique_ptr<Inside> inside);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Closes it, as `PQfinish` does; a transaction that is open then is rolled back by the server. In the child of a
  /// fork the parent's connection is left alone.
  ~Connection();

  /// libpq's own connection: for what is not here (`PQescapeLiteral`, `PQgetCancel`, `PQnotifies`), and the way round
  /// the shim. Writes that are sent by it, large objects too (`lo_write`), are not recorded.
  PGconn* get() const noexcept;
  /// Gives libpq's connection back; this object is of no use any more.
  PGconn* Release() noexcept;

  // Commands that are waited for

  Reply Exec(const char* query, Site site = Site());
  Reply ExecParams(const char* command, int count, const Oid* types, const char* const* values, const int* lengths,
                   const int* formats, int result_format, Site site = Site());
  Reply Prepare(const char* name, const char* query, int count, const Oid* types);
  Reply ExecPrepared(const char* name, int count, const char* const* values, const int* lengths, const int* formats,
                     int result_format, Site site = Site());
  Reply DescribePrepared(const char* name);
  Reply DescribePortal(const char* name);

  // Commands that are not: 1, or 0 and `ErrorMessage`. A read that has to wait first is waited for before it is sent;
  // what it depends on is not followed: inside a `Reading` the store is marked incomplete.

  int SendQuery(const char* query, Site site = Site());
  int SendQueryParams(const char* command, int count, const Oid* types, const char* const* values, const int* lengths,
                      const int* formats, int result_format, Site site = Site());
  int SendPrepare(const char* name, const char* query, int count, const Oid* types);
  int SendQueryPrepared(const char* name, int count, const char* const* values, const int* lengths, const int* formats,
                        int result_format, Site site = Site());
  int SetSingleRowMode();
  /// The next result; one that holds null where the command is over: then its write has been recorded.
  Reply GetResult();
  int ConsumeInput();
  int IsBusy();
  int Flush();

  // Pipeline mode

  int EnterPipelineMode();
  int ExitPipelineMode();
  int PipelineSync();
  int SendFlushRequest();
  PGpipelineStatus PipelineStatus() const;

  // COPY

  int PutCopyData(const char* buffer, int octets);
  int PutCopyEnd(const char* error = nullptr);
  int GetCopyData(char** buffer, int asynchronous);

  // The connection itself

  ConnStatusType Status() const;
  PGTransactionStatusType TransactionStatus() const;
  /// The words of the application's own last error; ours never get there (SHIM-2).
  const char* ErrorMessage() const;
  /// Why the last `Send…` sent nothing, where a read waited in vain; null otherwise.
  const Error* LastError() const noexcept;
  /// `PQreset`: what was pending is rolled back by the server, or its outcome stays unknown.
  void Reset();

 private:
  std::unique_ptr<Inside> inside_;
};

/// Takes a connection over: writes through what is returned join the current scope, under the store's name. Several
/// wraps under one name join one store.
///
/// Fails (and closes the connection) for options that cannot be or a connection that is not open (kConfiguration), and
/// for a server whose positions prove nothing (kUnfitStore: a pooler in transaction mode, `wal_level = minimal`, `fsync
/// = off`), unless `WhenUnfit(kUnproven)` lets the service start. `RestIn("column")` puts lineages into a column
/// `antipode` beside rows, as the tables have it that `antipode init … --set table=…` prepared; in a `Reading` they are
/// taken from results with that column.
[[nodiscard]] Result<Connection> Wrap(PGconn* connection, Options options);

/// This process waits for a store's servers, and never reads or writes it.
Result<std::shared_ptr<Store>> Register(const Options& options);

}  // namespace postgresql
}  // namespace antipode

#endif  // ANTIPODE_POSTGRESQL_H_
