// Lineages at rest: a column `antipode` beside the row, which a trigger fills from the transaction's own setting
// (PROP-21).
#ifndef ANTIPODE_POSTGRESQL_SRC_BESIDE_H_
#define ANTIPODE_POSTGRESQL_SRC_BESIDE_H_

#include <libpq-fe.h>

#include <optional>
#include <string>

#include "antipode/lineage.h"
#include "antipode/shim/write.h"
#include "binding.h"
#include "packets.h"
#include "statements.h"

namespace antipode::postgresql {

// What one connection's server is told to put beside rows.
class LineagePlacement {
 public:
  LineagePlacement(const Binding& binding, PGconn* connection) : binding_(binding), connection_(connection) {}

  // A command of `Piped` that tells it, for the transaction that the packet is in or begins.
  Send InTransaction(const Writing& write) const;

  // Tells it, and waits for that; what commits by itself has it until `TakeBack`. The error where it could not be told:
  // what was to be written would rest without its lineage.
  OwnResult Put(const Writing& write);

  // A statement was or will be sent that may change settings: ROLLBACK TO takes back what was set behind it.
  void MaySet(Kind kind) {
    if (kind != Kind::kRead && kind != Kind::kWrite) Forget();
  }
  // The transaction is over, or something failed in it.
  void Forget() { told_.reset(); }

  // Takes the lineage back from the connection: nothing of ours stays on it (SHIM-5).
  void TakeBack();

 private:
  std::string TextOf(const Writing& write) const;

  const Binding& binding_;
  PGconn* const connection_;
  std::optional<std::string> told_;  // in this transaction; nothing where that may hold no more
  bool in_session_ = false;          // it was told so for longer than a transaction
};

// What rests beside the rows of a result; nothing where it has no such column.
std::optional<Lineage> RestingIn(const PGresult* result, const Binding& binding);

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_BESIDE_H_
