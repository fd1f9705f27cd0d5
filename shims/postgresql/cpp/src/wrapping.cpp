// `Wrap` and `Register`: how a connection or a list of servers joins a store; and the connection's own words.
#include <utility>
#include <vector>

#include "antipode/postgresql.h"
#include "connection.h"
#include "shim.h"

namespace antipode::postgresql {
namespace {

Error Mistake(const std::string& words) { return Error{ErrorCode::kConfiguration, "AP501", words}; }

Result<std::shared_ptr<Store>> Join(Options options) {
  const std::string rest = options.store.rest.value_or("none");
  if (rest != "none" && rest != "column") return Mistake("rest=" + rest + ": want none or column");
  if (options.store.replicas) {
    for (std::any& each : *options.store.replicas) {
      Result<Target> target = TargetOf(each);
      if (!target.ok()) return target.error();
      each = *std::move(target);  // what the environment says later does not change it
    }
  }
  Result<std::shared_ptr<Store>> joined = JoinStore(PostgresqlType(), options.store);
  if (joined.ok() && options.unique_timelines) {
    static_cast<PostgresqlShim&>((*joined)->shim()).BelieveTimelinesUnique();
  }
  if (joined.ok() && options.relaxed_durability) {
    static_cast<PostgresqlShim&>((*joined)->shim()).BelieveServersRebuilt();
  }
  return joined;
}

bool IsUnnamed(const char* name) { return name != nullptr && name[0] == '\0'; }

// As many types as there are parameters; what was not said is for the server to infer.
std::vector<Oid> TypesOf(std::vector<Oid> types, int count) {
  types.resize(count > 0 ? static_cast<std::size_t>(count) : 0, 0);
  return types;
}

}  // namespace

Result<Connection> Wrap(PGconn* connection, Options options) {
  OwnConnection plain(connection);
  if (connection == nullptr || PQstatus(connection) != CONNECTION_OK) {
    return Mistake("the connection to wrap is not open: " +
                   (connection == nullptr ? std::string("null") : FirstLine(PQerrorMessage(connection))));
  }
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF || PQtransactionStatus(connection) != PQTRANS_IDLE) {
    return Mistake("the connection to wrap is in the middle of something: wrap it before its first command");
  }
  Result<std::shared_ptr<Store>> joined = Join(options);
  if (!joined.ok()) return joined.error();
  const Target target = TargetOf(connection);
  Binding binding(*joined, options);
  binding.Reach(target, PQsocket(connection));
  if (!binding.unfit.empty() && options.store.on_unfit.value_or(OnUnfit::kRaise) == OnUnfit::kRaise) {
    return Error{ErrorCode::kUnfitStore, "AP208",
                 binding.unfit + ". wrap(…, on_unfit='unproven') lets the service start"};
  }
  return Connection(std::make_unique<Connection::Inside>(std::move(plain), std::move(binding)));
}

Result<std::shared_ptr<Store>> Register(const Options& options) { return Join(options); }

// The server drops the one before as soon as it reads the next, be that it fails.
void Connection::Inside::UnnamedGave(const PGresult* result) {
  const bool is_servers = PQresultErrorField(result, PG_DIAG_SQLSTATE) != nullptr;
  if (PQresultStatus(result) != PGRES_COMMAND_OK && is_servers) unnamed_.reset();
}

// The protocol's own word for it is none of libpq 15's; a text that cannot be read drops it, too, and the transaction
// in which the application runs what is not there fails in any case.
void Connection::Inside::DropUnnamed() {
  if (!InPipeline()) PQclear(PQprepare(plain(), "", "NOTHING IS PREPARED", 0, nullptr));
}

// The words of libpq on a wrapped connection

Connection::Connection(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

PGconn* Connection::get() const noexcept { return inside_->plain(); }

PGconn* Connection::Release() noexcept { return inside_->Release(); }

Reply Connection::Exec(const char* query, Site site) {
  PGconn* const plain = get();
  return inside_->Run(
      inside_->StatementIn(query), [&] { return PQexec(plain, query); },
      [&] { return PQsendQueryParams(plain, query, 0, nullptr, nullptr, nullptr, nullptr, 0); }, site);
}

Reply Connection::ExecParams(const char* command, int count, const Oid* types, const char* const* values,
                             const int* lengths, const int* formats, int result_format, Site site) {
  PGconn* const plain = get();
  return inside_->Run(
      inside_->StatementIn(command),
      [&] { return PQexecParams(plain, command, count, types, values, lengths, formats, result_format); },
      [&] { return PQsendQueryParams(plain, command, count, types, values, lengths, formats, result_format); }, site);
}

Reply Connection::Prepare(const char* name, const char* query, int count, const Oid* types) {
  Reply reply = inside_->Describe([&] { return PQprepare(get(), name, query, count, types); });
  if (IsUnnamed(name)) inside_->UnnamedGave(reply.get());
  if (reply.status() != PGRES_COMMAND_OK) return reply;
  if (IsUnnamed(name)) {
    inside_->PreparedUnnamed(query, count, types);
  } else {
    inside_->Prepared(name, query);
  }
  return reply;
}

Reply Connection::ExecPrepared(const char* name, int count, const char* const* values, const int* lengths,
                               const int* formats, int result_format, Site site) {
  PGconn* const plain = get();
  if (IsUnnamed(name) && inside_->unnamed()) {
    const Connection::Inside::UnnamedStatement unnamed = inside_->unnamed().value();
    const std::vector<Oid> types = TypesOf(unnamed.types, count);
    return ExecParams(unnamed.query.c_str(), count, types.data(), values, lengths, formats, result_format, site);
  }
  return inside_->Run(
      inside_->PreparedStatement(name),
      [&] {
        if (IsUnnamed(name)) inside_->DropUnnamed();
        return PQexecPrepared(plain, name, count, values, lengths, formats, result_format);
      },
      [&] { return PQsendQueryPrepared(plain, name, count, values, lengths, formats, result_format); }, site);
}

Reply Connection::DescribePrepared(const char* name) {
  return inside_->Describe([&] {
    if (IsUnnamed(name) && inside_->unnamed()) {
      const auto& [query, types] = *inside_->unnamed();
      PQclear(PQprepare(get(), "", query.c_str(), static_cast<int>(types.size()), types.data()));
    } else if (IsUnnamed(name)) {
      inside_->DropUnnamed();
    }
    return PQdescribePrepared(get(), name);
  });
}

Reply Connection::DescribePortal(const char* name) {
  return inside_->Describe([&] { return PQdescribePortal(get(), name); });
}

int Connection::SendQuery(const char* query, Site site) {
  return inside_->Start(inside_->StatementIn(query), [&] { return PQsendQuery(get(), query); }, site);
}

int Connection::SendQueryParams(const char* command, int count, const Oid* types, const char* const* values,
                                const int* lengths, const int* formats, int result_format, Site site) {
  return inside_->Start(
      inside_->StatementIn(command),
      [&] { return PQsendQueryParams(get(), command, count, types, values, lengths, formats, result_format); }, site);
}

int Connection::SendPrepare(const char* name, const char* query, int count, const Oid* types) {
  // Whether it will be prepared is not known yet: what a named one does when run is not, either.
  if (!IsUnnamed(name)) inside_->Forget(name, query);
  const int done = inside_->Start(
      {Kind::kRead, false, false}, [&] { return PQsendPrepare(get(), name, query, count, types); }, Site());
  if (done != 0 && IsUnnamed(name) && query != nullptr) {
    inside_->PreparedUnnamed(query, count, types);
    if (PQpipelineStatus(get()) == PQ_PIPELINE_OFF) inside_->SentUnnamed();
  }
  return done;
}

int Connection::SendQueryPrepared(const char* name, int count, const char* const* values, const int* lengths,
                                  const int* formats, int result_format, Site site) {
  if (IsUnnamed(name) && inside_->unnamed()) {
    const Connection::Inside::UnnamedStatement unnamed = inside_->unnamed().value();
    const std::vector<Oid> types = TypesOf(unnamed.types, count);
    return SendQueryParams(unnamed.query.c_str(), count, types.data(), values, lengths, formats, result_format, site);
  }
  return inside_->Start(
      inside_->PreparedStatement(name),
      [&] {
        if (IsUnnamed(name)) inside_->DropUnnamed();
        return PQsendQueryPrepared(get(), name, count, values, lengths, formats, result_format);
      },
      site);
}

int Connection::SetSingleRowMode() { return PQsetSingleRowMode(get()); }
Reply Connection::GetResult() { return inside_->Next(); }
int Connection::ConsumeInput() { return PQconsumeInput(get()); }
int Connection::IsBusy() { return inside_->IsBusy(); }
int Connection::Flush() { return PQflush(get()); }

int Connection::EnterPipelineMode() { return PQenterPipelineMode(get()); }
int Connection::ExitPipelineMode() { return inside_->LeavePipeline(); }
int Connection::PipelineSync() { return inside_->Sync(); }
int Connection::SendFlushRequest() { return PQsendFlushRequest(get()); }
PGpipelineStatus Connection::PipelineStatus() const { return PQpipelineStatus(get()); }

int Connection::PutCopyData(const char* buffer, int octets) {
  inside_->PutsCopied();
  return PQputCopyData(get(), buffer, octets);
}
int Connection::PutCopyEnd(const char* error) {
  inside_->PutsCopied();
  return PQputCopyEnd(get(), error);
}
int Connection::GetCopyData(char** buffer, int asynchronous) { return inside_->GetCopyData(buffer, asynchronous); }

ConnStatusType Connection::Status() const { return PQstatus(get()); }
PGTransactionStatusType Connection::TransactionStatus() const { return PQtransactionStatus(get()); }
const char* Connection::ErrorMessage() const { return inside_->ErrorMessage(); }
const Error* Connection::LastError() const noexcept { return inside_->error(); }
void Connection::Reset() { inside_->Reset(); }

}  // namespace antipode::postgresql
