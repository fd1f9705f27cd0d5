// Reads that wait, or that say what they depend on (spec SHIM-12, SHIM-13, BAR-50, BAR-51).
#ifndef ANTIPODE_POSTGRESQL_SRC_READS_H_
#define ANTIPODE_POSTGRESQL_SRC_READS_H_

#include <libpq-fe.h>

#include <memory>
#include <optional>

#include "antipode/reading.h"
#include "antipode/scope.h"
#include "antipode/site.h"
#include "binding.h"
#include "packets.h"
#include "statements.h"

namespace antipode::postgresql {

// One read: what it has to wait for, and who wants to know what it depends on.
class ReadCall {
 public:
  // `has_snapshot`: whether the open transaction has run a statement.
  ReadCall(Binding& binding, PGconn* connection, const Statement& statement, bool has_snapshot, const Site& site);

  // What it is to show; empty where it waits for nothing.
  std::vector<WriteId> Wanted() const;

  // Waits until the connection's own server has what it is to show; fails by the policies.
  Result<void> Wait();

  // The value has come: what it depends on is asked for behind it.
  void Cover(const PGresult* result);

  // The position that goes into lineages with what was read, where there is one.
  const std::optional<WriteId>& covers() const { return covers_; }

  // A value was read, or will be, of which it cannot be said what it depends on.
  void Missed();

 private:
  bool collects() const { return reading_ || merges_; }
  void Saw(const std::vector<WriteId>& ids, const Lineage& lineage);
  std::optional<WriteId> Position();

  Binding& binding_;
  PGconn* const connection_;
  const bool reads_;
  const bool has_snapshot_;
  const Site site_;
  std::shared_ptr<ReadingBlock> reading_;
  ScopePtr scope_;
  bool merges_ = false;
  std::optional<WriteId> covers_;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_READS_H_
