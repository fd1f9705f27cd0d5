/// \file
/// The wire form's spelling and limits: what shims and carriers need to know of it (spec WIRE).
#ifndef ANTIPODE_WIRE_H_
#define ANTIPODE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {
namespace wire {

/// Longest lineage text, in bytes: a baggage pair of 4,096 less `antipode=` (WIRE-11).
inline constexpr std::size_t kMaxBytes = 4087;
/// Most entries of a lineage text (WIRE-12).
inline constexpr std::size_t kMaxEntries = 512;
/// Longest spelled key, in characters; a longer one travels in its hashed form (WIRE-6).
inline constexpr std::size_t kMaxKey = 1024;
/// Longest store name, in octets.
inline constexpr std::size_t kMaxStore = 63;
/// Longest epoch, in octets.
inline constexpr std::size_t kMaxEpoch = 32;
/// The text of the empty, complete lineage.
inline constexpr std::string_view kEmptyText = "1";
/// What readers of carriers strip at both ends (WIRE-26).
inline constexpr std::string_view kWhiteSpace = " \t\r\n";

/// Spells octets with the unreserved characters of the wire form (WIRE-2).
std::string Spell(std::string_view octets);

/// The octets that a spelled name stands for; a text that is not spelled so gives octets without meaning.
std::string Unspell(std::string_view text);

/// Spells a key; one that would pass 1,024 characters is spelled in its hashed form (WIRE-18).
std::string SpellKey(std::string_view key);

/// The hashed form of a key: NUL, `h-`, 32 hexadecimal digits of its SHA-256 (WIRE-17). One in that form stays as it
/// is.
std::string HashedKey(std::string_view key);

/// Whether a key is in its hashed form: a store that asks by key cannot ask for it.
bool IsHashed(std::string_view key);

/// Whether a text has only characters of spelled names, each spelled as it must be.
bool IsSpelled(std::string_view text);

/// The text without the wire form's white space at both ends.
std::string_view Strip(std::string_view text);

/// The lineage texts in the values of one carrier, made strict: joined lines, properties, white space, escapes
/// (WIRE-28).
///
/// What comes back is still to be read. Empty items are left out; values that hold nothing else give one empty text,
/// which nobody can read: something was lost on the way (WIRE-30).
std::vector<std::string> UnwrapHeader(const std::vector<std::string_view>& values);

}  // namespace wire
}  // namespace antipode

#endif  // ANTIPODE_WIRE_H_
