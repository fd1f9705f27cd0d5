/// \file
/// Write identifiers: one write to one datastore, `<store, key, version>` (paper 5.1, spec LIN-1 to LIN-4).
#ifndef ANTIPODE_WRITE_ID_H_
#define ANTIPODE_WRITE_ID_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "antipode/export.h"
#include "antipode/result.h"

namespace antipode ANTIPODE_EXPORT {

/// A version that compares within its epoch: a history that had one writer at a time.
///
/// The counter is an unsigned number of 64 bits. Only an object's version may have the empty epoch.
struct Ordered {
  std::string epoch;
  std::uint64_t counter = 0;

  friend bool operator==(const Ordered& a, const Ordered& b) { return a.counter == b.counter && a.epoch == b.epoch; }
  friend bool operator!=(const Ordered& a, const Ordered& b) { return !(a == b); }
};

/// A version without order: equal or not.
struct Opaque {
  std::string mark;

  friend bool operator==(const Opaque& a, const Opaque& b) { return a.mark == b.mark; }
  friend bool operator!=(const Opaque& a, const Opaque& b) { return !(a == b); }
};

using Version = std::variant<Ordered, Opaque>;

/// The version as a person reads it: `epoch.counter`, or the mark.
std::string ToString(const Version& version);

/// One write: the store's logical name, the object's key, the version that the write made.
///
/// An empty key makes it a position: everything in the store's history up to the version. Names and keys are octets;
/// an application's text is taken as UTF-8, not normalised (WIRE-38).
class WriteId {
 public:
  /// One write to an object. Fails (kConfiguration) for what the wire form cannot carry: an empty or over-long store
  /// name, an epoch of more than 32 octets, a position without epoch, an opaque version without key or mark (LIN-4).
  static Result<WriteId> Make(std::string store, std::string key, Version version);

  /// Everything in the store's history `epoch` up to `counter`.
  static Result<WriteId> Position(std::string store, std::string epoch, std::uint64_t counter);

  const std::string& store() const { return store_; }
  const std::string& key() const { return key_; }
  const Version& version() const { return version_; }

  /// The ordered version; null where it is opaque.
  const Ordered* ordered() const { return std::get_if<Ordered>(&version_); }
  /// The opaque version; null where it is ordered.
  const Opaque* opaque() const { return std::get_if<Opaque>(&version_); }

  /// Whether this covers a whole history up to its counter.
  bool is_position() const { return key_.empty(); }

  /// This identifier alone, as a section of the wire form: `blog-posts..8371ab90c2d4e6f1.1042`.
  std::string Section() const;

  friend bool operator==(const WriteId& a, const WriteId& b) {
    return a.store_ == b.store_ && a.key_ == b.key_ && a.version_ == b.version_;
  }
  friend bool operator!=(const WriteId& a, const WriteId& b) { return !(a == b); }

 private:
  friend struct WriteIdAccess;
  WriteId(std::string store, std::string key, Version version)
      : store_(std::move(store)), key_(std::move(key)), version_(std::move(version)) {}

  std::string store_;
  std::string key_;
  Version version_;
};

}  // namespace antipode

#endif  // ANTIPODE_WRITE_ID_H_
