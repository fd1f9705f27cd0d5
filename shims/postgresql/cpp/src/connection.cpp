#include "connection.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace antipode::postgresql {
namespace {

bool IsCopy(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

// Whether it gives data, be it that there are no rows.
bool HasData(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_SINGLE_TUPLE || status == PGRES_TUPLES_OK || PQntuples(result) > 0;
}

// What is left of a COPY to the client.
void DropCopied(PGconn* connection) {
  char* data = nullptr;
  while (PQgetCopyData(connection, &data, 0) > 0) PQfreemem(data);
}

}  // namespace

Connection::Inside::Inside(OwnConnection plain, Binding binding)
    : process_(getpid()),
      plain_(std::move(plain)),
      binding_(std::move(binding)),
      events_(EventsOf(plain_.get())),
      resets_seen_(events_->resets),
      commits_seen_(events_->commits),
      prepares_seen_(events_->prepares),
      flow_(binding_, plain_.get()) {}

Connection::Inside::~Inside() {
  if (!plain_) return;
  Unheard();
  flow_.Closes(IsEndedUnseen());
  if (getpid() != process_) close(PQsocket(plain_.release()));
}

PGconn* Connection::Inside::Release() {
  Unheard();
  if (plain_) flow_.Leaves(IsEndedUnseen());
  return plain_.release();
}

Statement Connection::Inside::StatementIn(const char* text) {
  if (text == nullptr) return {Kind::kRead, false};  // libpq refuses it
  if (!prepared_.empty() && MayRename(text)) prepared_.clear();
  binding_.Refresh();
  const Kind kind = binding_.KindOf(text);
  const bool follows = kind == Kind::kRead && binding_.store->mode() == Mode::kDryRun;
  return {kind, MayRead(kind, text), follows && ReadsData(text),
          binding_.notes && IsNoted(text), PastIn(text),
          MayPrepare(kind, text), TransactionIn(kind, text)};
}

const Statement& Connection::Inside::PreparedStatement(const char* name) {
  static const auto& unknown = *new Statement{Kind::kMaybe, true, false, true};  // outlives all connections
  static const auto& fetching = *new Statement{Kind::kMaybe, true, false, true, {Past::Does::kFetches}};
  const auto found = name == nullptr ? prepared_.end() : prepared_.find(name);
  if (found == prepared_.end()) return name != nullptr && fetching_.count(name) != 0 ? fetching : unknown;
  binding_.Refresh();
  return found->second;
}

void Connection::Inside::Prepared(const char* name, const char* text) {
  const Kind kind = binding_.KindOf(text);
  prepared_[name] = {kind, MayRead(kind, text), kind == Kind::kRead && ReadsData(text), IsNoted(text), PastIn(text),
                     MayPrepare(kind, text), TransactionIn(kind, text)};
  flow_.set_client_prepares();
}

void Connection::Inside::Forget(const char* name, const char* text) {
  if (name != nullptr) prepared_.erase(name);
  if (name != nullptr && text != nullptr && PastIn(text).does == Past::Does::kFetches) fetching_.insert(name);
}

void Connection::Inside::PreparedUnnamed(const char* query, int count, const Oid* types) {
  UnnamedStatement unnamed{query, {}};
  if (types != nullptr) unnamed.types.assign(types, types + count);
  unnamed_ = std::move(unnamed);
}

void Connection::Inside::Keep(const PGresult* result) {
  words_.reset();
  if (result != nullptr && PQresultStatus(result) == PGRES_FATAL_ERROR) words_ = PQresultErrorMessage(result);
}

const char* Connection::Inside::ErrorMessage() const {
  if (error_) return error_->message.c_str();
  return words_ ? words_->c_str() : PQerrorMessage(plain());
}

PGTransactionStatusType Connection::Inside::Before() {
  if (const int resets = events_->resets; resets != resets_seen_) {
    Unheard();
    flow_.Leaves(true);  // before the reset libpq itself may have been told to commit
    Forget();
    if (PQstatus(plain()) == CONNECTION_OK) binding_.Reach(TargetOf(plain()), PQsocket(plain()));
    resets_seen_ = resets;
  }
  if (!InPipeline()) NoteUnseenEnd();  // in a pipeline what may be committed is never thrown away
  const PGTransactionStatusType status = PQtransactionStatus(plain());
  if (status == PQTRANS_IDLE && !InPipeline()) moments_.Over();
  if (status == PQTRANS_INTRANS && left_ == PQTRANS_IDLE) moments_.Taken();  // it was begun by libpq itself
  return status;
}

Reply Connection::Inside::Plain(const Call& run) {
  error_.reset();
  if (!InPipeline()) End();
  if (Before() == PQTRANS_INTRANS && !moments_.has_snapshot()) {
    const Statement any{Kind::kRead, true, false};
    ReadCall read(binding_, plain(), any, moments_, Site());
    // Where that is in vain it is for the read to say so, when it comes.
    if (!read.Wait().ok() && PQstatus(plain()) != CONNECTION_OK) flow_.NotSent(false);
    moments_.Taken(read.proved());
  }
  PGresult* const result = run();
  Keep(result);
  Leave();
  return Reply(result);
}

Reply Connection::Inside::Describe(const Call& run) {
  error_.reset();
  if (!InPipeline()) {
    End();
    binding_.Refresh();
    if (Before() == PQTRANS_IDLE) {
      ReadCall read(binding_, plain(), {Kind::kRead, true, false}, moments_, Site());
      if (const Error* in_vain = Wait(read)) return Reply(*in_vain);
    }
  }
  return Plain(run);
}

const Error* Connection::Inside::Wait(ReadCall& read) {
  Result<void> waited = read.Wait();
  if (waited.ok()) return nullptr;
  if (PQstatus(plain()) != CONNECTION_OK) flow_.NotSent(false);
  error_ = std::make_shared<const Error>(waited.error());
  return error_.get();
}

void Connection::Inside::End() {
  while (under_way_) {
    const OwnResult rest(PQgetResult(plain()));
    if (rest == nullptr) {
      Over();
      return;
    }
    switch (PQresultStatus(rest.get())) {
      case PGRES_COPY_IN:
        if (PQputCopyEnd(plain(), "COPY terminated by another command") < 0) return;
        break;
      case PGRES_COPY_OUT:
        DropCopied(plain());
        break;
      case PGRES_COPY_BOTH:
        return;
      default:
        ending_.Add(rest.get());
    }
    Heard(rest.get());
    if (PQstatus(plain()) != CONNECTION_OK) Over();
  }
}

Reply Connection::Inside::Run(const Statement& statement, const Call& run, const Send& send, const Site& site) {
  Reply reply = RunOne(statement, run, send, site);
  Leave();
  return reply;
}

Reply Connection::Inside::Ended(const Past& past, OwnResult result) {
  Keep(result.get());
  if (result != nullptr && PQresultStatus(result.get()) != PGRES_FATAL_ERROR) moments_.Done(past, awaited_);
  return Reply(result.release());
}

Reply Connection::Inside::RunOne(const Statement& statement, const Call& run, const Send& send, const Site& site) {
  const Kind kind = statement.kind;
  error_.reset();
  words_.reset();
  if (InPipeline()) return Plain(run);  // which libpq refuses
  End();
  binding_.Refresh();
  const PGTransactionStatusType status = Before();
  const bool known = status == PQTRANS_IDLE || status == PQTRANS_INTRANS;
  ReadCall read(binding_, plain(), statement, moments_, site);
  if (!binding_.records && !flow_.writes()) {
    awaited_.clear();
    Sends(statement, status);
    return Plain(run);
  }
  if (known) {
    if (const Error* in_vain = Wait(read)) return Reply(*in_vain);
  }
  awaited_ = read.proved();
  Sends(statement, status);
  if (kind == Kind::kCommit && flow_.writes() && status == PQTRANS_INTRANS) {
    OwnResult result = flow_.Commit();
    Keep(result.get());
    return Reply(result.release());
  }
  const bool wrote = flow_.writes();
  if (binding_.records) flow_.Begins(statement, site);
  if (kind == Kind::kWrite && status == PQTRANS_IDLE && flow_.writes()) return Ended(statement.past, flow_.Alone(send));
  if (OwnResult refusal = flow_.PutBeside(kind)) {
    Refuse(refusal.get(), wrote);
    return Reply(refusal.release());
  }
  OwnResult result(run());
  Keep(result.get());
  ReadCall::Tell(*read.read(), binding_, result.get());
  if (IsCopy(result.get())) {
    under_way_ = true;
    kind_ = kind;
    past_ = {};
    ending_ = Ending();
    read.Missed();
    return Reply(result.release());
  }
  flow_.Ends(kind, Ending::Of(result.get()));
  read.Cover(result.get());
  return Ended(statement.past, std::move(result));
}

int Connection::Inside::Start(const Statement& statement, const Send& send, const Site& site) {
  const Kind kind = statement.kind;
  error_.reset();
  words_.reset();
  if (PQtransactionStatus(plain()) != PQTRANS_ACTIVE) Over();  // libpq needs no more calls to know that it is
  if (under_way_ && !InPipeline()) {  // libpq refuses this one, which says nothing of that (SCOPE-25)
    const int done = send();
    words_ = PQerrorMessage(plain());
    return done;
  }
  binding_.Refresh();
  const PGTransactionStatusType status = Before();
  ReadCall read(binding_, plain(), statement, moments_, site);
  if (status == PQTRANS_IDLE || status == PQTRANS_INTRANS) {
    if (Wait(read) != nullptr) return 0;
    awaited_ = read.proved();
  } else if (const Result<void> fetched = InPipeline() ? read.OfCursor() : Result<void>(); !fetched.ok()) {
    error_ = std::make_shared<const Error>(fetched.error());
    return 0;
  } else if (InPipeline()) {
    const auto wanted = read.Wanted();
    if (!wanted.ok() || !IsAwaited(*wanted)) {
      error_ = std::make_shared<const Error>(
          !wanted.ok() ? wanted.error()
                       : Error{ErrorCode::kConfiguration, "AP504",
                               binding_.store->name() +
                                   ": a read in a pipeline waits where nothing is on its way: take the results first, "
                                   "or begin the pipeline with the scope's read"});
      return 0;
    }
  }
  Sends(statement, status);
  const bool wrote = flow_.writes();
  if (binding_.records) flow_.Begins(statement, site);
  if (!InPipeline()) {
    if (const OwnResult refusal = flow_.PutBeside(kind)) {
      Refuse(refusal.get(), wrote);
      return 0;
    }
  } else if (const std::optional<Send> beside = flow_.PipedBeside(kind); beside && (*beside)() != 0) {
    pieces_.push_back(Piece::kOurs);
    ++unsynced_;
  }
  if (send() == 0) {
    words_ = PQerrorMessage(plain());  // a question of ours would take its place
    flow_.NotSent(!wrote);
    return 0;
  }
  left_ = PQTRANS_ACTIVE;
  read.Missed();
  if (InPipeline()) {
    ++unsynced_;
    if (binding_.rests) pieces_.push_back(Piece::kTheirs);
    flow_.Rides(statement);
    ReadCall::Tell(*read.read(), binding_);  // whatever comes of it, which writes it shows nobody knows
  } else {
    under_way_ = true;
    kind_ = kind;
    past_ = statement.past;
    ending_ = Ending();
    told_ = read.read()->is_told() ? read.read() : nullptr;
  }
  return 1;
}

void Connection::Inside::Sends(const Statement& statement, PGTransactionStatusType status) {
  // What begins a transaction takes no snapshot, unless more stands in its text; nor does SET.
  const bool takes = status == PQTRANS_IDLE ? statement.kind == Kind::kMayCommit : statement.kind != Kind::kSession;
  moments_.Sent(statement.past, takes, statement.may_read ? awaited_ : std::vector<WriteId>());
}

bool Connection::Inside::IsPast() {
  binding_.Refresh();
  const Statement any{Kind::kRead, true, false};
  ReadCall read(binding_, plain(), any, moments_, Site());
  if (binding_.records) read.Missed();  // whoever asked for it (SCOPE-24)
  const auto wanted = read.Wanted();
  if (wanted.ok() && IsAwaited(*wanted)) return false;
  const Result<void> allowed =
      !wanted.ok() ? wanted.error()
                   : read.OfPast("this result, or this part of it, is of when its statement was sent, which was before "
                                 "the writes that it is to show: take all of a result before anything is written, or "
                                 "send the statement again");
  if (allowed.ok()) return false;
  error_ = std::make_shared<const Error>(allowed.error());
  return true;
}

void Connection::Inside::Refuse(const PGresult* refusal, bool wrote) {
  Keep(refusal);
  flow_.NotSent(!wrote);
}

void Connection::Inside::SkipOurs(bool waits) {
  while (!pieces_.empty() && pieces_.front() == Piece::kOurs && (waits || PQisBusy(plain()) == 0)) {
    OwnResult result(PQgetResult(plain()));
    if (result == nullptr) {
      pieces_.pop_front();
    } else if (PQstatus(plain()) != CONNECTION_OK || PQresultStatus(result.get()) == PGRES_FATAL_ERROR) {
      lost_ = std::move(result);
    }
  }
}

// Of a group that an error of ours has ended, the first command of the application's has that error, as it would have
// its own.
PGresult* Connection::Inside::ResultOfTheirs() {
  OwnResult lost = std::move(lost_);
  if (lost && PQstatus(plain()) != CONNECTION_OK) return lost.release();
  OwnResult result(PQgetResult(plain()));
  if (lost && PQresultStatus(result.get()) == PGRES_PIPELINE_ABORTED) return lost.release();
  return result.release();
}

int Connection::Inside::IsBusy() {
  SkipOurs(false);
  return PQisBusy(plain());
}

Reply Connection::Inside::Next() {
  if (InPipeline() || under_way_) flow_.JoinCommitter(InPipeline() ? Kind::kCommit : kind_);
  SkipOurs(true);
  PGresult* const result = ResultOfTheirs();
  // A command ends with a null, a synchronisation point is one result.
  if (!pieces_.empty() && (result == nullptr || pieces_.front() == Piece::kSync)) pieces_.pop_front();
  if (result == nullptr) {
    if (!InPipeline()) Over();
    return Reply();
  }
  Keep(result);
  if (HasData(result) && IsPast()) {
    const OwnResult dropped(result);
    Heard(result);
    ending_.Add(result);
    return Reply(*error_);
  }
  if (InPipeline()) {
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC && syncs_ > 0) --syncs_;
    if (syncs_ == 0 && unsynced_ == 0 && PQresultStatus(result) == PGRES_PIPELINE_SYNC) flow_.Quiet();
    return Reply(result);
  }
  Heard(result);
  if (!IsCopy(result)) ending_.Add(result);
  return Reply(result);
}

int Connection::Inside::GetCopyData(char** buffer, int asynchronous) {
  error_.reset();
  if (IsPast()) {
    *buffer = nullptr;
    return -2;
  }
  return PQgetCopyData(plain(), buffer, asynchronous);
}

void Connection::Inside::Over() {
  if (!under_way_) return;
  under_way_ = false;
  if (std::exchange(prepares_unnamed_, false) && ending_.failed) unnamed_.reset();
  if (ending_.none) Unheard();  // its results were taken from libpq itself
  told_.reset();
  if (!ending_.none && !ending_.failed) moments_.Done(past_, awaited_);
  const bool may_end = kind_ == Kind::kCommit || kind_ == Kind::kPrepare || IsUnsure(kind_);
  if (!may_end && IsEndedUnseen()) NoteUnseenEnd();  // the results may be of what libpq itself has sent
  if (ending_.none && PQstatus(plain()) == CONNECTION_OK) {
    NoteUnseenEnd();
  } else {
    flow_.Ends(kind_, ending_);
  }
  Leave();
}

void Connection::Inside::Leave() {
  left_ = PQtransactionStatus(plain());
  commits_seen_ = events_->commits;
  prepares_seen_ = events_->prepares;
}

bool Connection::Inside::IsEndedUnseen() const {
  const bool was_open = left_ == PQTRANS_INTRANS || left_ == PQTRANS_INERROR;
  const bool is_sent = !under_way_ && !InPipeline() && PQtransactionStatus(plain()) == PQTRANS_ACTIVE;  // by libpq
  return is_sent || commits_seen_ != events_->commits || prepares_seen_ != events_->prepares ||
         (was_open && PQstatus(plain()) != CONNECTION_OK);
}

void Connection::Inside::NoteUnseenEnd() {
  const bool is_idle = PQtransactionStatus(plain()) == PQTRANS_IDLE;
  if (is_idle || IsEndedUnseen()) flow_.EndsUnseen(is_idle && prepares_seen_ == events_->prepares);
  commits_seen_ = events_->commits;
  prepares_seen_ = events_->prepares;
}

void Connection::Inside::Heard(const PGresult* result) {
  if (told_ && ReadCall::Tell(*told_, binding_, result)) told_.reset();
}

void Connection::Inside::Unheard() {
  if (const auto told = std::move(told_)) ReadCall::Tell(*told, binding_);
}

int Connection::Inside::Sync() {
  flow_.JoinCommitter();
  const int done = PQpipelineSync(plain());
  if (done != 0) {
    unsynced_ = 0;
    ++syncs_;
    if (binding_.rests) pieces_.push_back(Piece::kSync);
  }
  return done;
}

int Connection::Inside::LeavePipeline() {
  const bool was = InPipeline();
  const int done = PQexitPipelineMode(plain());
  if (done != 0 && was) {
    unsynced_ = syncs_ = 0;
    pieces_.clear();
    lost_.reset();
    flow_.Quiet();
    Leave();
  }
  return done;
}

// Nothing of the session that was is left.
void Connection::Inside::Forget() {
  flow_.Forget();
  prepared_.clear();
  unnamed_.reset();
  fetching_.clear();
  moments_.Forget();
  left_ = PQTRANS_IDLE;
  awaited_.clear();
  under_way_ = prepares_unnamed_ = false;
  unsynced_ = syncs_ = 0;
  pieces_.clear();
  lost_.reset();
}

void Connection::Inside::Reset() {
  Unheard();
  flow_.Closes(IsEndedUnseen());
  words_.reset();
  error_.reset();
  PQreset(plain());
  Forget();
  Before();
}

}  // namespace antipode::postgresql
