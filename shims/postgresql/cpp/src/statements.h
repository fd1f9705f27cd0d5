// What a statement may do, by its text: whether it writes, and whether it ends a transaction.
//
// Where the text does not say, it may write (`IsUnsure`), and the server is asked whether it did, or its place is taken
// as an upper bound: a guess may cost a question, but never a write (spec SHIM-6).
#ifndef ANTIPODE_POSTGRESQL_SRC_STATEMENTS_H_
#define ANTIPODE_POSTGRESQL_SRC_STATEMENTS_H_

#include <string>
#include <string_view>

#include "moments.h"

namespace antipode::postgresql {

enum class Kind {
  kRead,
  kSession,  // SET, RESET, DISCARD, ROLLBACK TO: no data, but what the transaction's settings are
  kWrite,  // one INSERT, UPDATE, DELETE or MERGE: in autocommit mode its position can be asked for in the same packet
  kMaybe,  // a function, a procedure, DDL: whatever it is, it may write
  kMayCommit,  // the same, and it may end a transaction and begin another: several statements, COMMIT AND CHAIN
  kCommit,
  kRollback,
  kPrepare,           // PREPARE TRANSACTION: the transaction is not over, though the connection is free
  kCommitPrepared,    // COMMIT PREPARED
  kRollbackPrepared,  // ROLLBACK PREPARED
};

// Whether a text declares a held cursor: what its query writes it writes in the commit, behind our question.
bool DeclaresHeld(std::string_view text);
// Whether its text does not say what it does: it may write, and read.
constexpr bool IsUnsure(Kind kind) { return kind == Kind::kMaybe || kind == Kind::kMayCommit; }

// A statement, as far as anybody asks about it.
struct Statement {
  Kind kind = Kind::kMaybe;
  bool may_read = true;     // it may give data: it waits, where reads do (SHIM-44)
  bool reads_data = false;  // it reads, and from something: no setting, no expression
  bool noted = false;       // a recorded history is told of it, as `IsNoted` has it
  Past past = {};
  bool may_prepare = false;      // one of several statements may prepare a transaction, and nobody tells
  // Of PREPARE TRANSACTION and its ends: the name as it stands there; empty where it is not plain.
  std::string transaction = {};
};

// What a statement may do.
Kind Classify(std::string_view text);

// The name of a prepared transaction in a text that prepares or ends one, as it stands there; empty where it is not
// plain.
std::string TransactionIn(Kind kind, std::string_view text);

// Whether one of the several statements of a text may be PREPARE TRANSACTION.
bool MayPrepare(Kind kind, std::string_view text);

// Whether it may give data. Of plain writes those that return something, or read what they write.
bool MayRead(Kind kind, std::string_view text);

// Whether a call of a function of this name, in lower case, is taken for one that changes nothing.
bool IsHarmless(std::string_view name);

// Whether one that is a read reads from something.
bool ReadsData(std::string_view text);

// Whether it may change which statement a prepared statement's name means (DEALLOCATE, DISCARD, PREPARE, a procedure).
bool MayRename(std::string_view text);

// Whether a recorded history is told of it as a read: it may show data (spec HIST-36). Of what writes, what it returns
// is no read.
bool IsNoted(std::string_view text);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_STATEMENTS_H_
