/// \file
/// One dry-run record while it is made: what every record has, and what of it is an event of the current span (spec
/// REC, OBS-11).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_RECORD_H_
#define ANTIPODE_SRC_DIAGNOSTICS_RECORD_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/scope.h"
#include "antipode/telemetry.h"
#include "antipode/write_id.h"
#include "base/json.h"

namespace antipode {

/// When something happened, and in which span.
struct Moment {
  double time = 0.0;  ///< Seconds since 1970.
  std::optional<SpanName> span;

  static Moment Now();
};

/// What a scope's last barrier in dry-run has followed: it misses what a read behind it misses there (REC-27).
struct BarrierObservation {
  std::string site;
  std::map<std::string, std::vector<WriteId>> asked;  ///< By the servers' addresses.

  /// Those of the last barrier in this scope; null where there are none.
  static std::shared_ptr<const BarrierObservation> Of(const ScopePtr& scope);
  /// Keeps them for as long as the scope lives.
  static void Keep(const ScopePtr& scope, std::shared_ptr<const BarrierObservation> looks);
  /// Whether it asked this server for all of these.
  bool Hold(const std::string& address, const std::vector<WriteId>& ids) const;
};

/// Where a lineage came from (REC-7).
struct Origin {
  std::string scope;
  std::string opened_by;
  std::string store;

  /// To be asked while the request runs, which knows its route by now; null: outside any scope.
  static Origin Of(const LineageScope* scope);
};

class Record {
 public:
  /// What every record has (REC-3), of what happens now or happened then.
  explicit Record(std::string_view kind) : Record(kind, Moment::Now()) {}
  Record(std::string_view kind, const Moment& moment);

  Record& Text(std::string_view name, std::string_view value);
  Record& Texts(std::string_view name, const std::vector<std::string>& values);
  Record& Number(std::string_view name, double value);
  Record& Integer(std::string_view name, std::int64_t value);
  Record& Flag(std::string_view name, bool value);
  Record& CameFrom(const Origin& origin);
  /// Seconds, or null where nobody saw it (REC-5).
  Record& VisibleAfter(const std::optional<double>& seconds);
  /// A version that has an order; a mark is none of a record's (REC-8).
  Record& Position(std::string_view name, const Ordered& version);
  Record& Objects(std::string_view name, const std::vector<JsonObject>& values);

  /// It is an event of the current span, too, with what is known by now.
  const Record& Tell() const;
  /// Writes it, in the background; never waits.
  void Put() const;
  std::string Written() const { return json_.Written(); }

 private:
  JsonObject json_;
  EventAttributes told_;
};

namespace records {

/// Does what makes a record. Where it fails the record is lost, and its thread goes on (BAR-61).
void Try(const std::function<void()>& what) noexcept;

}  // namespace records

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_RECORD_H_
