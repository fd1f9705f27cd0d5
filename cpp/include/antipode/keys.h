/// \file
/// Seal keys by id (spec TRUST-18 to TRUST-24).
#ifndef ANTIPODE_KEYS_H_
#define ANTIPODE_KEYS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/result.h"

namespace antipode ANTIPODE_EXPORT {

/// Seal keys in order: the first signs, all verify, so that two are valid while keys are rotated (TRUST-22).
class Keys {
 public:
  /// Ids with their octets, in order.
  using Items = std::vector<std::pair<std::string, std::string>>;

  /// No key.
  Keys() = default;

  /// Fails (kConfiguration) for an id that is empty, over-long or there twice, and for a key of fewer than 16 octets.
  static Result<Keys> Make(Items items);

  /// Reads a keys file: one `id base64` a line; empty lines and those that begin with `#` do not count.
  ///
  /// Fails (kConfiguration) with `origin` and the line in the message, never the key.
  static Result<Keys> ParseFile(std::string_view contents, const std::string& origin);

  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

  /// The ids, in order; the octets are shown to nobody.
  std::vector<std::string> ids() const;

  /// The key whose id is spelled so in a seal; null where there is none.
  const std::string* Spelled(std::string_view id) const;

  /// The first key with its spelled id; null where there is no key.
  const std::pair<std::string, std::string>* signer() const { return spelled_.empty() ? nullptr : &spelled_.front(); }

  /// How many bytes a seal of the signing key adds to a text; 0 without a key.
  std::size_t SealLength() const;

  friend bool operator==(const Keys& a, const Keys& b) { return a.items_ == b.items_; }
  friend bool operator!=(const Keys& a, const Keys& b) { return !(a == b); }

 private:
  Items items_;
  Items spelled_;
};

}  // namespace antipode

#endif  // ANTIPODE_KEYS_H_
