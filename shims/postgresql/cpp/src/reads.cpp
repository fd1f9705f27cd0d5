#include "reads.h"

#include <algorithm>
#include <cmath>

#include "beside.h"
#include "positions.h"
#include "schema.h"

namespace antipode::postgresql {
namespace {

constexpr char kLife[] = "SELECT " ANTIPODE_STARTED ", current_setting('transaction_isolation')";
// Beside the position that judges, what covers all that can be seen (EPOCH-31). On a primary the insert position: what
// was read may have been committed asynchronously. On a standby what it has received: a commit can be seen there a
// moment before it counts as replayed.
constexpr char kCover[] =
    "SELECT p.recovering, p.reached, p.timeline, p.system,"
    " CASE WHEN p.recovering THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_insert_lsn() END::text,"
    " (SELECT word FROM antipode.epochs AS e"
    " WHERE e.system = p.system AND e.timeline = p.timeline AND e.counter = 0 LIMIT 1),"
    " (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size')"
    " FROM antipode.place() AS p";

ReadOptions OptionsOf(const Binding& binding, PGconn* connection, const Statement& statement) {
  ReadOptions options;
  options.waits = binding.waits;
  options.collects = statement.may_read;
  options.is_told = binding.notes ? statement.noted : statement.reads_data;
  options.is_sure = statement.reads_data && PQpipelineStatus(connection) == PQ_PIPELINE_OFF;
  return options;
}

constexpr std::chrono::milliseconds kOneLook(250);  // so long may a question take, however near the deadline is

bool HasRow(const Results& results) {
  return !results.empty() && PQresultStatus(results.back().get()) == PGRES_TUPLES_OK &&
         PQntuples(results.back().get()) == 1;
}

}  // namespace

ReadCall::ReadCall(Binding& binding, PGconn* connection, const Statement& statement, Moments& moments, const Site& site)
    : binding_(binding),
      connection_(connection),
      reads_(statement.may_read),
      past_(statement.past),
      moments_(moments),
      read_(std::make_shared<Read>(binding.store, OptionsOf(binding, connection, statement), site)) {}

Result<std::vector<WriteId>> ReadCall::Wanted() const {
  if (!reads_) return std::vector<WriteId>();
  return read_->Required();
}

Result<void> ReadCall::OfPast(const std::string& what) const {
  return read_->RefusePast(what);
}

Result<void> ReadCall::OfCursor() const {
  if (past_.does != Past::Does::kFetches) return {};
  const auto wanted = Wanted();
  if (!wanted.ok()) return wanted.error();
  if (wanted->empty() || moments_.CursorShows(past_.cursor, *wanted)) return {};
  return OfPast(
      "what is fetched is of when its cursor was declared, which was before the writes that it is to show: declare it "
      "again behind them, by a statement of its own on this connection");
}

Result<void> ReadCall::Wait() {
  auto required = Wanted();
  if (!required.ok()) return required.error();
  std::vector<WriteId> wanted = std::move(required).value();
  if (wanted.empty()) return {};
  if (past_.does == Past::Does::kFetches) {
    Result<void> done = OfCursor();
    if (done.ok() && moments_.CursorShows(past_.cursor, wanted)) proved_ = std::move(wanted);
    return done;
  }
  const auto began = std::chrono::steady_clock::now();
  std::chrono::nanoseconds timeout = TimeoutOf(binding_.store->name(), binding_.options.timeout);
  if (const auto end = read_->scope() ? read_->scope()->deadline() : std::nullopt) {
    timeout = std::clamp<std::chrono::nanoseconds>(*end - began, std::chrono::nanoseconds(0), timeout);
  }
  const auto deadline = began + timeout;
  const auto in_vain = [&](Verdict verdict, const std::string& words) {
    StoreResult judged{verdict, words, std::chrono::steady_clock::now() - began, {}};
    if (verdict == Verdict::kUnproven) judged.kind = UnprovenKind::kUnfit;
    return read_->Refuse(std::move(judged));
  };
  const std::string server = binding_.store->name() + " at " + binding_.server->address();
  const auto late = [&] {
    return in_vain(
        Verdict::kTimedOut,
        server + ": no answer came on the connection of the read itself, which is closed. The read waited for it " +
            std::to_string(std::llround(std::chrono::duration<double, std::milli>(timeout).count())) + " ms");
  };
  // Where the transaction has no snapshot yet the question would take it: then it comes behind the wait.
  std::optional<Place> place;
  if (PQtransactionStatus(connection_) == PQTRANS_INTRANS && moments_.has_snapshot()) {
    place = AskPlace(deadline);
    if (!place->in_time) return late();
    if (place->keeps_snapshot()) {
      if (!moments_.SnapshotShows(wanted)) {
        return OfPast(
            "its " + place->isolation +
            " transaction reads from a snapshot taken before the writes that it is to show: begin another one");
      }
      proved_ = std::move(wanted);
      return {};
    }
  }
  const Result<bool> waited = read_->Wait(binding_.server, deadline - std::chrono::steady_clock::now());
  if (!waited.ok()) return waited.error();
  if (*waited) proved_ = std::move(wanted);
  if (!place) {
    place = AskPlace(deadline);
    if (PQtransactionStatus(connection_) == PQTRANS_INTRANS) moments_.Taken(proved_);
  }
  if (!place->in_time) return late();
  const std::string judged = binding_.shim().LifeOf(binding_.server->address());
  if (place->life.empty() || judged.empty() || judged == place->life) return {};
  proved_.clear();
  return in_vain(Verdict::kUnproven, server + " leads to several servers: name them one by one");
}

ReadCall::Place ReadCall::AskPlace(std::chrono::steady_clock::time_point deadline) {
  deadline = std::max(deadline, std::chrono::steady_clock::now() + kOneLook);
  Results facts;
  if (PQpipelineStatus(connection_) == PQ_PIPELINE_OFF) {
    facts = Simple(connection_, kLife, deadline);
  } else if (auto piped = Piped(connection_, {{Asked(connection_, kLife)}}, deadline).commands; !piped.empty()) {
    facts = std::move(piped.front());
  }
  if (HasRow(facts)) return {std::string(ValueOf(facts.back().get(), 0)), std::string(ValueOf(facts.back().get(), 1))};
  return {{}, {}, PQstatus(connection_) == CONNECTION_OK || std::chrono::steady_clock::now() < deadline};
}

void ReadCall::Cover(const PGresult* result) {
  if (!read_->collects()) return;
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_FATAL_ERROR) return;  // no value was read
  if (binding_.rests && PQnfields(result) > 0) {
    if (const auto resting = RestingIn(result, binding_)) {
      read_->Saw({}, *resting);
    } else {
      Missed();
    }
  }
  const PGTransactionStatusType now = PQtransactionStatus(connection_);
  if ((now != PQTRANS_IDLE && now != PQTRANS_INTRANS) || PQpipelineStatus(connection_) != PQ_PIPELINE_OFF) {
    Missed();
  } else if (const auto covers = Position()) {
    read_->Covered(*covers);
    read_->End();  // before the scope has what it read
    read_->Saw({*covers});
  } else {
    Missed();
  }
}

std::optional<WriteId> ReadCall::Position() {
  const bool in_block = PQtransactionStatus(connection_) == PQTRANS_INTRANS;
  if (in_block) moments_.Taken(proved_);  // by this question, where what it comes behind took none (BEGIN)
  const Results answer = Simple(connection_, std::string(in_block ? "SAVEPOINT antipode;" : "") + kCover);
  const bool good = HasRow(answer);
  if (in_block) Simple(connection_, good ? "RELEASE antipode" : "ROLLBACK TO antipode; RELEASE antipode");
  if (!good) {
    binding_.Say("AP203", "cover",
                 "what is read from " + binding_.store->name() + " cannot be covered: run antipode init");
    return std::nullopt;
  }
  const PGresult* const row = answer.back().get();
  const auto reached = NumberOf(ValueOf(row, 1));
  const auto timeline = DecimalOf(ValueOf(row, 2));
  const auto system = DecimalOf(ValueOf(row, 3));
  const auto seen = NumberOf(ValueOf(row, 4));
  if (!reached || !timeline || !system || !seen) return std::nullopt;
  std::uint64_t counter = *seen;
  if (ValueOf(row, 0) != "t") {
    counter = std::max(*reached, RecordEnd(*seen, DecimalOf(ValueOf(row, 6)).value_or(0)));
  } else if (counter < *reached) {  // it replays what it has not received since it began to: from an archive
    return std::nullopt;
  }
  const Epoch epoch{*system, static_cast<std::uint32_t>(*timeline), std::string(ValueOf(row, 5))};
  auto id = WriteId::Position(binding_.store->name(), epoch.Name(), counter);
  if (!id.ok()) return std::nullopt;
  return *id;
}

void ReadCall::Missed() { read_->Mark(); }

bool ReadCall::Tell(Read& read, const Binding& binding, const PGresult* result) noexcept {
  const ExecStatusType status = PQresultStatus(result);  // of none at all, too
  return status != PGRES_FATAL_ERROR && status != PGRES_BAD_RESPONSE && Tell(read, binding);
}

bool ReadCall::Tell(Read& read, const Binding& binding) noexcept {
  if (!read.is_told()) return false;
  read.Told({binding.server, std::vector<ReadValue>(1)});  // nobody knows what
  return true;
}

}  // namespace antipode::postgresql
