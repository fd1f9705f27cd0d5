// What a wrapped connection holds.
#ifndef ANTIPODE_POSTGRESQL_SRC_CONNECTION_H_
#define ANTIPODE_POSTGRESQL_SRC_CONNECTION_H_

#include <libpq-fe.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "antipode/postgresql.h"
#include "antipode/shim/read.h"
#include "binding.h"
#include "flow.h"
#include "moments.h"
#include "reads.h"
#include "resets.h"
#include "session.h"

namespace antipode::postgresql {

class Connection::Inside {
 public:
  // Takes the connection over.
  Inside(OwnConnection plain, Binding binding);
  // Ends the connection; in the child of a fork, whose it is not, without a word to the server (SCOPE-13).
  ~Inside();

  using Call = std::function<PGresult*()>;

  PGconn* plain() const { return plain_.get(); }
  PGconn* Release();

  // A command that is waited for. `run` is libpq's own call, `send` sends the same alone in a packet.
  Reply Run(const Statement& statement, const Call& run, const Send& send, const Site& site);
  // The same without anything to record, or to read; in a transaction it may take the snapshot, and then does so behind
  // a wait.
  Reply Plain(const Call& run);
  // What tells of the catalogue (SHIM-44): it waits like a read, and says where that was in vain.
  Reply Describe(const Call& run);
  // A command that is not waited for.
  int Start(const Statement& statement, const Send& send, const Site& site);

  Statement StatementIn(const char* text);
  // The prepared one of this name.
  const Statement& PreparedStatement(const char* name);
  // The application's own statement of this name, which is not the unnamed one.
  void Prepared(const char* name, const char* text);
  // One that will be prepared later, or not.
  void Forget(const char* name, const char* text);
  int GetCopyData(char** buffer, int asynchronous);
  // More of a COPY that another scope may have begun.
  void PutsCopied() const { flow_.JoinCommitter(kind_); }
  // The unnamed statement, which every question of ours replaces: it is prepared anew with its parameters.
  struct UnnamedStatement {
    std::string query;
    std::vector<Oid> types;
  };
  void PreparedUnnamed(const char* query, int count, const Oid* types);
  // Its preparation was sent, and has this result, or will have one: where it fails there is no unnamed statement.
  void UnnamedGave(const PGresult* result);
  void SentUnnamed() { prepares_unnamed_ = true; }
  // The application has none: a question of ours is not to be taken for it.
  void DropUnnamed();
  const std::optional<UnnamedStatement>& unnamed() const { return unnamed_; }

  Reply Next();
  int IsBusy();
  int Sync();
  int LeavePipeline();
  void Reset();
  const char* ErrorMessage() const;
  const Error* error() const { return error_.get(); }

 private:
  // Have a read wait; return why that was in vain, which is the connection's error then.
  const Error* Wait(ReadCall& read);
  bool InPipeline() const { return PQpipelineStatus(plain()) != PQ_PIPELINE_OFF; }
  Reply RunOne(const Statement& statement, const Call& run, const Send& send, const Site& site);
  // The transaction's status before something is sent. What the application did meanwhile by libpq itself shows here.
  PGTransactionStatusType Before();
  // Whether a COMMIT or PREPARE TRANSACTION was answered that the shim has not sent, or what may be one was sent and is
  // not answered, or the connection was lost to it.
  bool IsEndedUnseen() const;
  // The shim has seen all that was done by now.
  void Leave();
  // Where the application has ended an open write's transaction by libpq itself, the write ends, too (SCOPE-25).
  void NoteUnseenEnd();
  // This is over, and was sent when what is awaited was proved.
  Reply Ended(const Past& past, OwnResult result);
  void Forget();
  void Keep(const PGresult* result);
  void Over();
  // The application is given this result of the command under way: observers hear of the first one.
  void Heard(const PGresult* result);
  // Nobody will hear any more what the command under way has given: for a recorded history it may have been read.
  void Unheard();
  // Reads what is under way to its end and throws it away, which libpq's own waiting calls do first.
  void End();
  // Whether this was waited for by the command under way, or when the pipeline was last quiet.
  bool IsAwaited(const std::vector<WriteId>& wanted) const { return Moments::Covers(awaited_, wanted); }
  // A statement is sent that has waited for what is awaited; `status` is the transaction's before it.
  void Sends(const Statement& statement, PGTransactionStatusType status);
  // Whether what comes of a result now may not be given: it is of when its statement was sent (SHIM-48).
  bool IsPast();
  // Our telling what is to rest beside was refused, so that what follows it is not sent.
  void Refuse(const PGresult* refusal, bool wrote);
  PGresult* ResultOfTheirs();
  // Commands of ours that come back next are no business of the application's; `waits`, or as far as they have come.
  void SkipOurs(bool waits);

  const int process_;
  OwnConnection plain_;
  Binding binding_;
  const std::shared_ptr<const Events> events_;
  int resets_seen_;
  // COMMIT and PREPARE TRANSACTION up to the last command that the shim has seen the end of: more are not the shim's.
  int commits_seen_;
  int prepares_seen_;
  Flow flow_;
  // What the application has prepared by libpq's own call.
  std::map<std::string, Statement> prepared_;
  std::optional<UnnamedStatement> unnamed_;
  bool prepares_unnamed_ = false;  // by the asynchronous command that is under way
  std::set<std::string, std::less<>> fetching_;  // names under which a FETCH may have been prepared by `SendPrepare`
  Moments moments_;
  // The transaction's behind the last command that the shim has seen the end of.
  PGTransactionStatusType left_ = PQTRANS_IDLE;

  // An asynchronous command or COPY that is under way.
  bool under_way_ = false;
  Kind kind_ = Kind::kRead;
  Past past_;
  Ending ending_;
  std::shared_ptr<Read> told_;  // of which observers may hear still

  std::vector<WriteId> awaited_;  // and proved: by the read that was sent last; in a pipeline when it was last quiet

  // A pipeline.
  int unsynced_ = 0;  // commands sent since the last synchronisation point
  int syncs_ = 0;     // synchronisation points that have not come back
  // What is still to come back, in order, where lineages rest beside rows: for then some of it is ours.
  enum class Piece { kOurs, kTheirs, kSync };
  std::deque<Piece> pieces_;
  // The error of a command of ours, or the connection's last words: of the application's next command it is the first.
  OwnResult lost_;

  std::optional<std::string> words_;  // the application's own last error
  std::shared_ptr<const Error> error_;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_CONNECTION_H_
