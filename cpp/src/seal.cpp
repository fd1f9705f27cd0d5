#include "seal.h"

#include <algorithm>
#include <charconv>

#include "antipode/wire.h"
#include "digest.h"
#include "parse.h"
#include "text.h"

namespace antipode {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kLongestExpiry = 19;

std::string MacOf(std::string_view key, std::string_view claim) { return Hex(HmacSha256(key, claim), kMacBytes); }

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
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) > 127;
}

}  // namespace

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

std::string Seal(std::string_view text, const Keys& keys, std::int64_t expiry) {
  const auto& [id, key] = *keys.signer();
  std::string claim(StripSeal(text));
  claim.append(kSealMark).append(".").append(id).append(".").append(std::to_string(expiry));
  const std::string mac = MacOf(key, claim);
  return claim + "." + mac;
}

OpenedSeal OpenSeal(std::string_view text, const Keys& keys, double now) {
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
  const std::string mac = MacOf(*key, text.substr(0, text.size() - fields.mac.size() - 1));
  if (!EqualInConstantTime(mac, fields.mac)) return {body, SealState::kBad};
  return {body, now < static_cast<double>(CounterOf(fields.expiry)) ? SealState::kValid : SealState::kExpired};
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

}  // namespace antipode
