// Data of moments that are past, which no wait makes newer: cursors, a transaction's snapshot (spec SHIM-48).
#ifndef ANTIPODE_POSTGRESQL_SRC_MOMENTS_H_
#define ANTIPODE_POSTGRESQL_SRC_MOMENTS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"
#include "antipode/write_id.h"

namespace antipode::postgresql {

// What a text does with a moment that is past.
struct Past {
  enum class Does {
    kNothing,
    kDeclares,  // a cursor
    kFetches,   // from a cursor
    kCloses,    // cursors
    kImports,   // the snapshot of another session
    kTakes,     // a snapshot, though it gives no data
  };
  Does does = Does::kNothing;
  std::string cursor = {};  // its name; empty where nobody can tell, or for all
  bool holds = false;       // beyond its transaction
};

// What a text does, as far as it shows; what is unsure fetches.
Past PastIn(std::string_view text);

// The moments of one connection, each with the writes that were proved when it was taken.
class Moments {
 public:
  // Whether the open transaction has a snapshot, if it is one that keeps it.
  bool has_snapshot() const { return has_snapshot_; }
  // Whether that snapshot was taken when all of these were proved.
  bool SnapshotShows(const std::vector<WriteId>& wanted) const { return Covers(shown_, wanted); }
  // Whether a cursor was declared when all of these were proved; no where nobody knows of it.
  bool CursorShows(const std::string& name, const std::vector<WriteId>& wanted) const;

  // A statement is sent when these are proved; `takes`: the transaction has its snapshot by then.
  void Sent(const Past& past, bool takes, const std::vector<WriteId>& proved);
  // The open transaction has its snapshot, if it had none: taken when these were proved.
  void Taken(const std::vector<WriteId>& proved = {}) { Sent({}, true, proved); }
  // A statement that was sent when these were proved has done what it says. Before that is known a cursor of its name
  // may be an older one.
  void Done(const Past& past, const std::vector<WriteId>& proved);
  // No transaction is open.
  void Over();
  // Nothing of the connection's is left.
  void Forget();

  // Whether all of these were proved when the others were.
  static bool Covers(const std::vector<WriteId>& proved, const std::vector<WriteId>& wanted);

 private:
  struct Cursor {
    std::vector<WriteId> proved;
    bool holds = false;
  };

  std::map<std::string, Cursor> cursors_;
  bool has_snapshot_ = false;
  std::vector<WriteId> shown_;  // by the snapshot
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_MOMENTS_H_
