// Seals: a keyed proof that a lineage text was written by one of ours (spec TRUST-18 to TRUST-24).
//
// A seal is the last extension of a text, `~_.h.KEYID.EXPIRY.MAC`. It is no part of the lineage: dropped where the text
// is read, made anew where it is written. The MAC covers everything before it, key id and expiry included.
#ifndef ANTIPODE_SRC_TRUST_SEAL_H_
#define ANTIPODE_SRC_TRUST_SEAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "antipode/keys.h"

namespace antipode {

inline constexpr std::string_view kSealMark = "~_.h";
inline constexpr std::size_t kMacBytes = 16;

// What a seal is for: a text that is sealed for one purpose is worth nothing for another (TRUST-36).
enum class Purpose { kRequest, kResponse, kMessage, kValue };

// The word of the key that belongs to it: `antipode request`.
std::string_view ToString(Purpose purpose);

// What a look at a text's seal found; only kValid is a proof (TRUST-20).
enum class SealState { kValid, kMissing, kExpired, kUnknownKey, kBad };

std::string_view ToString(SealState state);

// A text without its seal, and what the seal was worth.
struct OpenedSeal {
  std::string_view text;
  SealState state;
};

// The text with a seal of the first key, of which there must be one, that holds until `expiry` (Unix time, seconds; 0:
// without end, for messages and values). A seal that the text has already is replaced (TRUST-21).
std::string Seal(std::string_view text, const Keys& keys, Purpose purpose, std::int64_t expiry);

// Takes a text's seal off and verifies it for a purpose at `now` (Unix time, seconds).
OpenedSeal OpenSeal(std::string_view text, const Keys& keys, Purpose purpose, double now);

// The text without its seal, unverified. A tail that is no extension stays: the reader refuses it (WIRE-15).
std::string_view StripSeal(std::string_view text);

}  // namespace antipode

#endif  // ANTIPODE_SRC_TRUST_SEAL_H_
