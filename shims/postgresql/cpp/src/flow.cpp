#include "flow.h"

#include <utility>

#include "antipode/reading.h"
#include "antipode/shim/shim_tools.h"
#include "positions.h"
#include "probe.h"
#include "schema.h"

namespace antipode::postgresql {
namespace {

constexpr char kFacts[] =
    "SELECT system_identifier::text, " ANTIPODE_MAY_CALL("mark") ","
    " (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size') FROM pg_control_system()";
constexpr char kMark[] = "SELECT antipode.mark()";

bool Writes(Kind kind) {
  return kind == Kind::kWrite || IsUnsure(kind) || kind == Kind::kCommitPrepared || kind == Kind::kRollbackPrepared;
}

bool Fails(const PGresult* result) { return result == nullptr || PQresultStatus(result) == PGRES_FATAL_ERROR; }

bool Good(const Results& results) {
  return !results.empty() && PQresultStatus(results.back().get()) == PGRES_TUPLES_OK &&
         PQntuples(results.back().get()) == 1;
}

}  // namespace

void Flow::Begins(const Statement& statement, const Site& site) {
  const Kind kind = statement.kind;
  transaction_ = statement.transaction;
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  // What ends a transaction, or may, can have ended it when the connection breaks.
  committing_ = kind == Kind::kCommit || kind == Kind::kPrepare || IsUnsure(kind) || kind == Kind::kCommitPrepared ||
                status == PQTRANS_IDLE;
  beside_.MaySet(kind);
  JoinCommitter(kind);
  if (!Writes(kind)) return;
  // In a pipeline nobody learns which of its commands failed: then what was prepared stays in doubt.
  if (!write_ && !transaction_.empty() && PQpipelineStatus(connection_) == PQ_PIPELINE_OFF) {
    if (auto found = prepared_.extract(transaction_)) write_ = std::move(found.mapped());
    was_prepared_ = write_ != nullptr;
  }
  if (!write_) {
    write_ = std::make_unique<Writing>(binding_.store, std::string_view(), site);
    certain_ = false;
  } else {
    write_->JoinScope(site);
  }
  if (kind == Kind::kMayCommit) half_committed_ = true;
  may_be_prepared_ = may_be_prepared_ || statement.may_prepare;
  if (kind == Kind::kWrite || kind == Kind::kCommitPrepared) certain_ = true;
}

void Flow::JoinCommitter(Kind kind) const {
  if (write_ && (Writes(kind) || kind == Kind::kCommit || kind == Kind::kPrepare)) write_->JoinCommitter();
}

OwnResult Flow::PutBeside(Kind kind) {
  return RestsBeside(kind) ? beside_.Put(*write_) : nullptr;
}

std::optional<Send> Flow::PipedBeside(Kind kind) const {
  if (!RestsBeside(kind)) return std::nullopt;
  return beside_.InTransaction(*write_);
}

void Flow::NotSent(bool began) {
  beside_.TakeBack();
  if (!write_) return;
  if (Broken()) {
    Gone();
  } else if (began) {
    half_committed_ = false;  // of what was not sent no part is
    RolledBack();
  }
}

void Flow::Rides(const Statement& statement) {
  committing_ = true;
  if (statement.kind == Kind::kPrepare) prepares_ = prepares_ ? std::string() : statement.transaction;
  // What a synchronization point or a COMMIT has committed by then shows nowhere in the next quiet point's transaction.
  if (write_) half_committed_ = true;
}

void Ending::Add(const PGresult* result) {
  if (result == nullptr) return;
  none = false;
  failed = failed || PQresultStatus(result) == PGRES_FATAL_ERROR;
  fatal = fatal || EndsConnection(result);
  tag = PQcmdStatus(const_cast<PGresult*>(result));
}

void Flow::Ends(Kind kind, const Ending& ending) {
  beside_.TakeBack();
  beside_.MaySet(ending.failed ? Kind::kMaybe : kind);
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  if (!write_) return;
  if (Broken() || ending.fatal) {
    Gone();
  } else if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) {
    committing_ = false;
  } else if (status != PQTRANS_IDLE) {
    Unknown();
  } else if (ending.none || ending.failed) {
    if (IsUnsure(kind) && !ending.none) {
      Incomplete("pending", "it failed, and may have committed a part before");
    } else if (was_prepared_) {
      KeepPrepared(transaction_);  // what was prepared is so still
    } else {
      RolledBack();
    }
  } else if (kind == Kind::kPrepare) {
    KeepPrepared(transaction_);  // pending until somebody commits it
  } else if (kind == Kind::kRollback || kind == Kind::kRollbackPrepared ||
             (kind == Kind::kCommit && ending.tag == "ROLLBACK")) {
    RolledBack();  // a COMMIT of a transaction in error rolls it back, too
  } else if (may_be_prepared_) {
    Unknown();  // it is pending until somebody ends it, who knows where
  } else {
    SettleApart();
  }
}

void Flow::EndsUnseen(bool settles) {
  beside_.TakeBack();
  beside_.MaySet(Kind::kMaybe);
  if (!write_) return;
  JoinCommitter();
  if (Broken() || !settles || may_be_prepared_ || was_prepared_) {
    Unknown();
  } else {
    certain_ = false;
    SettleApart();
  }
}

void Flow::Quiet() {
  if (!write_) return;
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  if (Broken()) {
    Gone();
  } else if (status == PQTRANS_IDLE && prepares_) {
    KeepPrepared(*std::exchange(prepares_, std::nullopt));
  } else if (status == PQTRANS_IDLE && may_be_prepared_) {
    Unknown();
  } else if (status == PQTRANS_IDLE) {
    SettleApart();
  }
}

void Flow::Closes(bool ended) {
  prepared_.clear();  // they stay pending: their outcome is not known here
  if (!write_) return;
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  if (ended) {
    Unknown();
  } else if (!Broken() && (status == PQTRANS_INTRANS || status == PQTRANS_INERROR)) {
    RolledBack();  // by the server, when the connection ends
  } else if (!Broken() && status == PQTRANS_IDLE) {
    Unknown();  // somebody has ended it by libpq itself
  } else {
    Gone();
  }
}

void Flow::Leaves(bool ended) {
  if (Broken()) return Closes(ended);
  prepared_.clear();
  Unknown();  // also what is in error, for a savepoint brings it back
}

void Flow::KeepPrepared(const std::string& transaction) {
  auto write = Take();
  if (!transaction.empty()) prepared_[transaction] = std::move(write);  // else its end leaves it in doubt
}

std::unique_ptr<Writing> Flow::Take() {
  certain_ = committing_ = half_committed_ = may_be_prepared_ = was_prepared_ = false;
  beside_.Forget();
  return std::move(write_);
}

// The connection is lost. What had not been told to commit is rolled back by the server.
void Flow::Gone() {
  if (committing_ || half_committed_) {
    Unknown();
  } else {
    RolledBack();
  }
}

// What was open is known not to have happened; what was committed before, within it, has, and is covered (SCOPE-25).
void Flow::RolledBack() {
  if (!std::exchange(half_committed_, false)) {
    if (const auto write = Take()) write->Abandon();
  } else if (!Broken() && PQtransactionStatus(connection_) == PQTRANS_IDLE) {
    certain_ = false;  // maybe nothing was
    SettleApart();
  } else {
    Unknown();
  }
}

void Flow::Unknown() {
  if (const auto write = Take()) write->OutcomeUnknown();
}

void Flow::Incomplete(const char* reason, const std::string& detail) {
  if (const auto write = Take()) write->RecordIncomplete(reason, detail);
}

OwnResult Flow::Commit() {
  JoinCommitter();
  committing_ = true;
  Results results =
      Simple(connection_, std::string(certain_ ? kHow : kHowAndWhether) + ";COMMIT;" + kQuestion);
  committing_ = false;
  if (results.empty()) {
    Unknown();
    return nullptr;
  }
  if (results.size() < 2) {
    // The server refused before it came to the COMMIT (a cancelled statement): the transaction is in error.
    if (Broken() || EndsConnection(results.back().get())) Unknown();
    return std::move(results.back());
  }
  OwnResult how = std::move(results[0]);
  OwnResult done = std::move(results[1]);
  if (PQresultStatus(done.get()) == PGRES_FATAL_ERROR) {
    if (Broken() || EndsConnection(done.get())) {
      Unknown();
    } else {
      RolledBack();
    }
    return done;
  }
  if (std::string_view(PQcmdStatus(done.get())) == "ROLLBACK" || (!certain_ && ValueOf(how.get(), 1) == "f")) {
    RolledBack();  // it only read, or had failed before
    return done;
  }
  results.erase(results.begin(), results.begin() + 2);
  Settle(results, ValueOf(how.get(), 0) == "off");
  return done;
}

OwnResult Flow::Alone(const Send& send) {
  std::vector<std::vector<Send>> groups{{send, Asked(connection_, kHow)}, {}};
  if (binding_.rests) groups[0].insert(groups[0].begin(), beside_.InTransaction(*write_));
  // In a group of its own: should the server have forgotten it, the write before is not touched.
  const bool asks_prepared = prepared_question_;
  const bool prepares = client_prepares_ && !prepared_question_;
  if (asks_prepared) {
    groups[1].push_back([this] {
      return PQsendQueryPrepared(connection_, kPreparedQuestion, 0, nullptr, nullptr, nullptr, 0);
    });
  } else {
    groups[1].push_back(Asked(connection_, kQuestion));
  }
  if (prepares) {
    groups.push_back({[this] { return PQsendPrepare(connection_, kPreparedQuestion, kQuestion, 0, nullptr); }});
  }
  auto [answers, ends] = Piped(connection_, groups);
  if (binding_.rests && answers.size() < 2) {
    answers.clear();  // what was to rest was sent, and not the write
  } else if (binding_.rests && RefusalOf(answers[0]).empty()) {
    answers.erase(answers.begin());
  }
  if (answers.empty() || answers[0].empty()) {
    if (Broken()) {
      Unknown();
    } else {
      RolledBack();  // it was refused by libpq: nothing was sent
    }
    return nullptr;
  }
  // It is committed where its group ends: an error there, or of our question before, is the write's own.
  OwnResult own = std::move(answers[0].back());
  if (answers.size() > 1 && !Fails(own.get()) && !RefusalOf(answers[1]).empty()) own = std::move(answers[1].back());
  if (!ends.empty() && !Fails(own.get()) && !ends[0].empty()) own = std::move(ends[0].front());
  if (Fails(own.get())) {
    if (Broken() || EndsConnection(own.get())) {
      Unknown();
    } else {
      RolledBack();
    }
    return own;
  }
  if (ends.empty()) {  // the connection broke before the commit was answered
    Unknown();
    return nullptr;
  }
  answers.resize(groups.size() + 1);
  const Results& how = answers[1];
  Results answer = std::move(answers[2]);
  if (prepares) {
    prepared_question_ = IsPrepared(answers[3]) && !answers[3].empty();
  } else if (asks_prepared && IsUnknownStatement(answer)) {
    prepared_question_ = false;
    answer.clear();
  }
  Settle(answer, !Good(how) || ValueOf(how.back().get(), 0) == "off");
  return own;
}

// The commit is done: its position joins the scope. Errors of our own questions end here.
void Flow::Settle(const Results& answer, bool asynchronous) {
  if (!write_) return;
  if (asynchronous && binding_.async_commits == AsyncCommits::kIncomplete) {
    Incomplete("asynchronous", "it was committed with synchronous_commit = off, so a crash may lose it");
    return;
  }
  std::optional<Place> place = PlaceOf(answer);
  if (!place && !Broken()) {
    if (!RefusalOf(answer).empty()) {
      Refused(answer);
      return;
    }
  }
  place = Bounded(place, asynchronous);
  if (place && (place->timeline != timeline_ || epoch_.empty())) {
    Learn(place->timeline);
    place = Flushed();  // behind the row of the epoch
  }
  if (!write_) return;
  if (!place || epoch_.empty()) {
    Incomplete("pending", Broken() ? "the connection broke before its position came" : "the server gave no position");
  } else if (place->timeline != timeline_) {
    Incomplete("pending", "the server was promoted behind the commit");
  } else {
    Record(Ordered{epoch_, place->position});
  }
}

// The least position that covers the commit, and that is flushed.
std::optional<Place> Flow::Bounded(std::optional<Place> place, bool asynchronous) {
  if (!place) return Flushed();
  if (!asynchronous && place->Certain(segment_)) return place;
  const std::optional<Place> flushed = Flushed();
  if (!flushed || segment_ == 0 || flushed->timeline != place->timeline) return flushed;
  if (asynchronous) place->position = RecordEnd(place->inserted, segment_);
  return place;
}

std::optional<Place> Flow::Flushed() {
  std::optional<Place> place;
  for (int turn = 0; turn < 3 && write_; ++turn) {
    const Answers answers = Piped(connection_, {{Asked(connection_, kFlush)}, {Asked(connection_, kQuestion)}});
    if (answers.commands.size() < 2 || answers.ends.size() < 2 || Broken()) return std::nullopt;
    for (const Results* each : {&answers.commands[0], &answers.ends[0], &answers.commands[1]}) {
      if (RefusalOf(*each).empty()) continue;
      Refused(*each);
      return std::nullopt;
    }
    place = PlaceOf(answers.commands[1]);
    if (!place || place->Certain(segment_)) return place;
  }
  return place;
}

// Which system and branch this is; once a connection, and again after a promotion under it.
void Flow::Learn(std::uint32_t timeline) {
  const std::string& store = binding_.store->name();
  const bool pipeline = PQpipelineStatus(connection_) != PQ_PIPELINE_OFF;
  const auto ask = [&](const char* text) -> Results {
    if (!pipeline) return Simple(connection_, text);
    std::vector<Results> answers = Piped(connection_, {{Asked(connection_, text)}}).commands;
    return answers.empty() ? Results() : std::move(answers.front());
  };
  epoch_.clear();
  const Results facts = ask(kFacts);
  if (!Good(facts)) return;
  const auto system = DecimalOf(ValueOf(facts.back().get(), 0));
  if (!system) return;
  segment_ = DecimalOf(ValueOf(facts.back().get(), 2)).value_or(0);
  std::string word;
  std::string missing;
  if (ValueOf(facts.back().get(), 1) == "t") {
    const Results marked = ask(kMark);
    if (Good(marked)) {
      word = ValueOf(marked.back().get(), 0);
    } else if (Broken()) {
      return;
    } else {
      missing = RefusalOf(marked);
      binding_.Say("AP508", "marks", "the epochs of " + store + " cannot be marked: " + missing);
    }
  } else {
    const char* const user = PQuser(connection_);
    missing = NoTable(store, user == nullptr ? "USER" : user);
    binding_.Say("AP508", "marks", store + ": " + missing);
  }
  NoteMarks(store, missing);
  timeline_ = timeline;
  epoch_ = Epoch{*system, timeline, word}.Name();
}

void Flow::Record(const Ordered& position) {
  if (!binding_.unfit.empty()) {
    Incomplete("unfit", binding_.unfit);
    return;
  }
  const bool certain = certain_;
  const auto write = Take();
  if (certain) {
    write->Record(position);
  } else {
    write->RecordUpperBound(position);
  }
  if (const auto reading = CurrentReading()) {
    const auto id = WriteId::Position(binding_.store->name(), position.epoch, position.counter);
    if (id.ok()) reading->Saw({*id});
  }
}

void Flow::Refused(const Results& results) {
  const std::string words = RefusalOf(results);
  if (words.find("recovery") != std::string::npos && !certain_) {
    RolledBack();  // a function that was called at a standby, which takes no writes
    return;
  }
  if (IsCancelled(results)) {
    Incomplete("pending", "the question for its position was cancelled: " + words);
    return;
  }
  binding_.Say("AP506", "rights", "a write to " + binding_.store->name() + " is recorded as incomplete: " + words);
  Incomplete("rights", words);
}

}  // namespace antipode::postgresql
