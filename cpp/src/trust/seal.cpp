#include "trust/seal.h"

#include <algorithm>
#include <charconv>

#include "antipode/wire.h"
#include "model/digest.h"
#include "model/parse.h"
#include "model/text.h"

namespace antipode {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kLongestExpiry = 19;

// A clock that is behind or ahead costs nobody a lineage.
constexpr double kLeeway = 30;

std::string MacOf(std::string_view key, Purpose purpose, std::string_view claim) {
  const Digest derived = HmacSha256(key, ToString(purpose));
  return Hex(HmacSha256({reinterpret_cast<const char*>(derived.data()), derived.size()}, claim), kMacBytes);
}

bool MayBeWithoutEnd(Purpose purpose) { return purpose == Purpose::kMessage || purpose == Purpose::kValue; }

struct Fields {
  std::string_view id;
  std::string_view expiry;
  std::string_view mac;
};

bool IsId(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '_') {
      const std::string_view digits = text.substr(i + 1, 2);
      if (digits.size() != 2 || digits.find_first_not_of("0123456789ABCDEF") != kNone) return false;
      i += 2;
    } else if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) {
      return false;
    }
  }
  return !text.empty();
}

bool IsExpiry(std::string_view text) {
  return !text.empty() && text.size() <= kLongestExpiry && text.find_first_not_of(kDigits) == kNone &&
         (text[0] != '0' || text.size() == 1);
}

bool IsMac(std::string_view text) {
  return text.size() == 2 * kMacBytes && text.find_first_not_of("0123456789abcdef") == kNone;
}

// `.KEYID.EXPIRY.MAC`, or nothing where it is none.
bool ReadTail(std::string_view tail, Fields& fields) {
  const std::vector<std::string_view> parts = SplitAt(tail, '.');
  if (parts.size() != 4 || !parts[0].empty()) return false;
  fields = {parts[1], parts[2], parts[3]};
  return IsId(fields.id) && IsExpiry(fields.expiry) && IsMac(fields.mac);
}

bool IsAlphanumeric(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) > 127;
}

}  // namespace

std::string_view ToString(Purpose purpose) {
  switch (purpose) {
    case Purpose::kRequest:
      return "antipode request";
    case Purpose::kResponse:
      return "antipode response";
    case Purpose::kMessage:
      return "antipode message";
    case Purpose::kValue:
      return "antipode value";
  }
  return "antipode request";
}

std::string_view ToString(SealState state) {
  switch (state) {
    case SealState::kValid:
      return "valid";
    case SealState::kMissing:
      return "missing";
    case SealState::kExpired:
      return "expired";
    case SealState::kUnknownKey:
      return "unknown key";
    case SealState::kBad:
      return "bad";
  }
  return "bad";
}

std::string Seal(std::string_view text, const Keys& keys, Purpose purpose, std::int64_t expiry) {
  const auto& [id, key] = *keys.signer();
  std::string claim(StripSeal(text));
  claim.append(kSealMark).append(".").append(id).append(".").append(std::to_string(expiry));
  const std::string mac = MacOf(key, purpose, claim);
  return claim + "." + mac;
}

OpenedSeal OpenSeal(std::string_view text, const Keys& keys, Purpose purpose, double now) {
  const std::size_t mark = text.rfind(kSealMark);
  if (mark == kNone) return {text, SealState::kMissing};
  const std::string_view body = text.substr(0, mark);
  const std::string_view tail = text.substr(mark + kSealMark.size());
  Fields fields;
  if (!ReadTail(tail, fields)) {
    // `~_.h` may also begin another extension's tag, such as `~_.hint`.
    if (!tail.empty() && IsAlphanumeric(tail[0])) return {text, SealState::kMissing};
    return {body, SealState::kBad};
  }
  const std::string* key = keys.Spelled(fields.id);
  if (key == nullptr) return {body, SealState::kUnknownKey};
  const std::string mac = MacOf(*key, purpose, text.substr(0, text.size() - fields.mac.size() - 1));
  if (!EqualInConstantTime(mac, fields.mac)) return {body, SealState::kBad};
  if (fields.expiry == "0") return {body, MayBeWithoutEnd(purpose) ? SealState::kValid : SealState::kBad};
  const bool valid = now < static_cast<double>(CounterOf(fields.expiry)) + kLeeway;
  return {body, valid ? SealState::kValid : SealState::kExpired};
}

std::string_view StripSeal(std::string_view text) {
  const std::size_t mark = text.rfind(kSealMark);
  if (mark == kNone) return text;
  const std::string_view body = text.substr(0, mark);
  const std::string_view tail = text.substr(mark + kSealMark.size());
  if (!tail.empty()) {
    const std::vector<std::string_view> fields = SplitAt(tail, '.');
    if (!fields[0].empty() || !std::all_of(fields.begin(), fields.end(), wire::IsSpelled)) return text;
  }
  // What was cut or changed on the way must not look like the lineage that is left over.
  const std::string dotted = std::string(kSealMark) + ".";
  const std::string next = std::string(kSealMark) + "~";
  if (EndsWith(body, kSealMark) || body.find(dotted) != kNone || body.find(next) != kNone) return text;
  return Trim(body, wire::kWhiteSpace) == body ? body : text;
}

std::size_t Keys::SealLength() const {
  constexpr std::string_view kExpiry = "9999999999";
  if (empty()) return 0;
  return kSealMark.size() + 1 + signer()->first.size() + 1 + kExpiry.size() + 1 + 2 * kMacBytes;
}

}  // namespace antipode
