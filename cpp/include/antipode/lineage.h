/// \file
/// The lineage: the set of writes that a request depends on, kept minimal (paper 5, spec LIN).
#ifndef ANTIPODE_LINEAGE_H_
#define ANTIPODE_LINEAGE_H_

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/result.h"
#include "antipode/write_id.h"

namespace antipode ANTIPODE_EXPORT {

/// How two lineages stand to each other in the order of inclusion.
enum class Order { kBefore, kAfter, kEqual, kConcurrent };

/// The order's word: `before`, `after`, `equal`, `concurrent`.
std::string_view ToString(Order order);

/// An immutable set of write identifiers, with the stores in which something is missing.
///
/// `a | b` joins, `a <= b` asks whether b covers a. Joining is commutative, associative and idempotent, so lineages may
/// be merged anywhere, in any order, twice. Each store's section stays an unopened string until something is appended
/// to it or merged with it. Order, `==` and hash take no part of `incomplete`. Copies are cheap, and safe among
/// threads.
class Lineage {
 public:
  /// The empty, complete lineage: the unit of joining.
  Lineage() = default;
  explicit Lineage(const std::vector<WriteId>& ids);
  explicit Lineage(const WriteId& id);

  /// Reads a lineage text, white space round it aside (paper table 2, WIRE-26); kMalformedLineage where it is none.
  static Result<Lineage> Deserialize(std::string_view text);

  /// The lineage as text in the wire form, `1` for the empty one (paper table 2).
  ///
  /// What no reader would take is not written: past 4,087 bytes or 512 entries sections are left out and marked
  /// (WIRE-37).
  std::string Serialize() const;

  // Joining and taking away

  /// This lineage and this write (the paper's `append`, as a value).
  Lineage Including(const WriteId& id) const;
  Lineage Including(const std::vector<WriteId>& ids) const;

  /// The join of two lineages (the paper's `transfer`, as a value).
  Lineage Union(const Lineage& other) const;
  friend Lineage operator|(const Lineage& a, const Lineage& b) { return a.Union(b); }
  Lineage& operator|=(const Lineage& other) { return *this = Union(other); }

  /// This lineage less what that write covers (LIN-21).
  Lineage Without(const WriteId& id) const;
  /// This lineage less a whole store with its mark of incompleteness (LIN-22).
  Lineage WithoutStore(std::string_view store) const;
  /// This lineage less what another one covers.
  Lineage Without(const Lineage& other) const;

  /// What this lineage has beyond `base`: entries, marks of incompleteness, extensions (LIN-27).
  Lineage AddedTo(const Lineage& base) const;
  /// The writes of this lineage that `other` does not cover, without marks of incompleteness.
  Lineage Beyond(const Lineage& other) const;

  // Comparing

  /// Whether `other` covers every write of this lineage.
  bool IsCoveredBy(const Lineage& other) const;
  /// Whether this lineage covers a write.
  bool Covers(const WriteId& id) const;
  /// kBefore where `other` covers this and more, kAfter the other way round, kEqual, or kConcurrent.
  Order Compare(const Lineage& other) const;
  friend bool operator<=(const Lineage& a, const Lineage& b) { return a.IsCoveredBy(b); }
  friend bool operator==(const Lineage& a, const Lineage& b) { return a.Equals(b); }
  friend bool operator!=(const Lineage& a, const Lineage& b) { return !a.Equals(b); }
  std::size_t Hash() const;

  // Looking in

  /// Whether there is nothing to send: no write, no mark of incompleteness, no extension (WIRE-31).
  bool empty() const { return rep_ == nullptr; }
  /// The number of write identifiers.
  std::size_t size() const;
  /// The write identifiers, in canonical order.
  std::vector<WriteId> ids() const;
  /// Names of the stores that it has writes of.
  std::vector<std::string> stores() const;
  /// The writes to one store, in canonical order.
  std::vector<WriteId> OfStore(std::string_view store) const;
  /// One store's section as it stands, unopened: a value to compare, not to parse. It lives as long as this lineage.
  std::optional<std::string_view> SectionText(std::string_view store) const;
  /// The counter, where a store's section is one position of this epoch and nothing else; cheap.
  std::optional<std::uint64_t> OnlyPosition(std::string_view store, std::string_view epoch) const;

  // Incompleteness

  /// Names of the stores in which something is missing; the empty name means anywhere.
  std::vector<std::string> incomplete() const;
  /// Unknown extensions, as spelled (LIN-20).
  std::vector<std::string> extensions() const;
  /// This lineage without the extensions `task` and `within`, which belong to the text that they came with: they name
  /// the branches of whoever takes it in, and C++ has none (BRANCH-8).
  Lineage WithoutExtensionsOfBranches() const;
  /// Whether nothing is missing in any store.
  bool IsComplete() const;
  /// Whether nothing is missing in these stores (LIN-18).
  bool IsComplete(const std::vector<std::string>& stores) const;
  /// This lineage with a mark that something is missing: in these stores, or anywhere if none is named.
  Lineage MarkedIncomplete(const std::vector<std::string>& stores = {}) const;
  /// This lineage without any mark of incompleteness: the application vouches that nothing is missing.
  Lineage Vouched() const;

  // Size

  /// This lineage in at most `budget` bytes: whole sections are left out and marked (WIRE-33 to WIRE-35), first the
  /// longest of those that only passed through, then of the stores in `changed` the one whose change is oldest.
  ///
  /// `changed`: names of stores that changed in the scope, the oldest change first.
  Lineage Fit(std::size_t budget, const std::vector<std::string>& changed = {}) const;
  /// Whether both are the very same value, not only equal; cheap.
  bool IsSame(const Lineage& other) const { return rep_ == other.rep_; }

 private:
  friend struct LineageAccess;
  struct Rep;
  explicit Lineage(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  bool Equals(const Lineage& other) const;

  std::shared_ptr<const Rep> rep_;  // null: empty and complete
};

/// The lineage's text: what a test prints.
std::ostream& operator<<(std::ostream& out, const Lineage& lineage);

}  // namespace antipode

template <>
struct std::hash<antipode::Lineage> {
  std::size_t operator()(const antipode::Lineage& lineage) const { return lineage.Hash(); }
};

#endif  // ANTIPODE_LINEAGE_H_
