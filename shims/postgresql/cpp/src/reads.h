// Reads that wait, or that say what they depend on (spec SHIM-12, SHIM-13, BAR-50, BAR-51).
#ifndef ANTIPODE_POSTGRESQL_SRC_READS_H_
#define ANTIPODE_POSTGRESQL_SRC_READS_H_

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "antipode/shim/read.h"
#include "antipode/site.h"
#include "binding.h"
#include "moments.h"
#include "packets.h"
#include "statements.h"

namespace antipode::postgresql {

// One read: what it has to wait for, and who wants to know what it depends on.
class ReadCall {
 public:
  ReadCall(Binding& binding, PGconn* connection, const Statement& statement, Moments& moments, const Site& site);

  // Who is told of it, for what outlives this.
  const std::shared_ptr<Read>& read() const { return read_; }

  // Tells observers of a result that the application is given: that it read, and no more (HIST-36); whether they heard
  // of it. What has an error has read nothing.
  static bool Tell(Read& read, const Binding& binding, const PGresult* result) noexcept;
  // The same where something came, or may have.
  static bool Tell(Read& read, const Binding& binding) noexcept;

  // What it is to show; empty where it waits for nothing. Fails, by the policies, where that names the store otherwise.
  Result<std::vector<WriteId>> Wanted() const;

  // Fails at once for a cursor's sake, by the policies (SHIM-48).
  Result<void> OfCursor() const;

  // Waits until the connection's own server has what it is to show; fails by the policies. What it reads of a moment
  // that is past fails at once, where that does not show it (SHIM-48). Where the server does not answer on the
  // connection by the deadline, that is closed (SHIM-47).
  Result<void> Wait();

  // Fails, by the policies, as what reads data of a moment that is past (SHIM-48): `what` says of which, and the way
  // round.
  Result<void> OfPast(const std::string& what) const;

  // What was proved before it is sent; where the policies let it go on unproved, nothing.
  const std::vector<WriteId>& proved() const { return proved_; }

  // The value has come: what it depends on is asked for behind it.
  void Cover(const PGresult* result);

  // A value was read, or will be, of which it cannot be said what it depends on.
  void Missed();

 private:
  std::optional<WriteId> Position();
  // What the connection says of itself.
  struct Place {
    std::string life;         // when its server started; empty where it does not say
    std::string isolation;
    bool in_time = true;
    bool keeps_snapshot() const {
      return !isolation.empty() && isolation != "read committed" && isolation != "read uncommitted";
    }
  };
  Place AskPlace(std::chrono::steady_clock::time_point deadline);

  Binding& binding_;
  PGconn* const connection_;
  const bool reads_;
  const Past& past_;
  Moments& moments_;
  const std::shared_ptr<Read> read_;
  std::vector<WriteId> proved_;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_READS_H_
