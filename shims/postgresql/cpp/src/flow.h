// One connection's transactions: a write is pending from its first statement that may write, until its end is known.
#ifndef ANTIPODE_POSTGRESQL_SRC_FLOW_H_
#define ANTIPODE_POSTGRESQL_SRC_FLOW_H_

#include <libpq-fe.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/shim/write.h"
#include "antipode/site.h"
#include "beside.h"
#include "binding.h"
#include "packets.h"
#include "statements.h"

namespace antipode::postgresql {

// How a command ended: of its results, what says whether anything was committed.
struct Ending {
  bool none = true;     // there was no result
  bool failed = false;  // an error
  bool fatal = false;   // the last words of the server's process
  std::string tag;      // as `INSERT 0 1`

  static Ending Of(const PGresult* result) {
    Ending ending;
    ending.Add(result);
    return ending;
  }
  // One more result of it.
  void Add(const PGresult* result);
};

// The writes of one wrapped connection (spec SHIM-6 to SHIM-8, SHIM-11).
class Flow {
 public:
  Flow(Binding& binding, PGconn* connection)
      : binding_(binding), connection_(connection), beside_(binding, connection) {}

  bool writes() const { return write_ != nullptr; }
  // Whether the client prepares statements of its own, so that our question may be one, too (SHIM-5).
  void set_client_prepares() { client_prepares_ = true; }

  // A statement is about to be sent: what it may write is of the current scope, too, whichever began the transaction.
  void Begins(const Statement& statement, const Site& site);
  // The current scope commits what may be others' write, has the server do it, or hears of it.
  void JoinCommitter(Kind kind = Kind::kCommit) const;
  // Tells the server what is to rest beside what is written next; not in a pipeline. The error where it could not.
  OwnResult PutBeside(Kind kind);
  // The same as a command of a pipeline; nothing where nothing is to rest.
  std::optional<Send> PipedBeside(Kind kind) const;
  // What was to be sent was not.
  void NotSent(bool began);
  // It is over.
  void Ends(Kind kind, const Ending& ending);
  // The transaction was ended by libpq itself, where nobody heard how; `settles`: it has not been prepared, and nothing
  // is open, so that a position covers it, be that it was rolled back (SCOPE-25).
  void EndsUnseen(bool settles);
  // Something of a pipeline was sent, after which nobody can tell what is committed until the next quiet point.
  void Rides(const Statement& statement);
  // A pipeline is quiet: nothing is on its way.
  void Quiet();

  // Sends COMMIT with the questions round it; its own result.
  OwnResult Commit();
  // One write in autocommit mode, with the questions in the same packet; its own result.
  OwnResult Alone(const Send& send);

  // The application gives the connection up, or has it connected anew; `ended`: something was ended by libpq itself.
  void Closes(bool ended);
  // The application takes the plain connection away: what is open on it may still be committed there.
  void Leaves(bool ended);
  void Forget() { epoch_.clear(), prepared_question_ = false; }

 private:
  std::unique_ptr<Writing> Take();
  void KeepPrepared(const std::string& transaction);
  void Gone();
  void RolledBack();
  void Unknown();
  void Incomplete(const char* reason, const std::string& detail);
  void Refused(const Results& results);
  void Settle(const Results& answer, bool asynchronous);
  void SettleApart() { Settle({}, false); }
  std::optional<Place> Bounded(std::optional<Place> place, bool asynchronous);
  std::optional<Place> Flushed();
  void Learn(std::uint32_t timeline);
  void Record(const Ordered& position);
  bool RestsBeside(Kind kind) const {
    return binding_.rests && write_ && (kind == Kind::kWrite || IsUnsure(kind));
  }
  bool Broken() const { return PQstatus(connection_) != CONNECTION_OK; }

  Binding& binding_;
  PGconn* const connection_;
  LineagePlacement beside_;
  std::unique_ptr<Writing> write_;
  bool certain_ = false;     // one of its statements was a plain write: the server need not be asked whether it wrote
  // A part may be committed already: a statement inside may have ended the transaction, or a pipeline did (SCOPE-25).
  bool half_committed_ = false;
  bool committing_ = false;  // the server may have been told to commit
  std::string transaction_;  // the prepared transaction that the last statement speaks of; empty where none is known
  bool may_be_prepared_ = false;         // a text may have prepared the transaction, and nobody told
  bool was_prepared_ = false;            // and its write is the one under way
  std::optional<std::string> prepares_;  // a PREPARE TRANSACTION of this name is on its way in a pipeline
  std::map<std::string, std::unique_ptr<Writing>> prepared_;  // of prepared transactions (two-phase commit), by name

  // What was found out about the server.
  std::uint64_t segment_ = 0;
  std::uint32_t timeline_ = 0;
  std::string epoch_;  // of `timeline_`; empty until it was asked for
  bool client_prepares_ = false;
  bool prepared_question_ = false;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_FLOW_H_
