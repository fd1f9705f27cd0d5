#include "antipode/shim/envelope.h"

#include <algorithm>

#include "model/text.h"

namespace antipode {
namespace {

// What no UTF-8 text begins with; a value that does is always put into an envelope.
constexpr std::string_view kBegin = "\xF5\x41\x45";
constexpr char kForm = '1';
constexpr std::size_t kHead = 6;
constexpr std::size_t kMostBytes = 0xFFFF;

}  // namespace

Result<std::string> CloseEnvelope(std::string_view value, std::string_view text) {
  if (text.empty() && !StartsWith(value, kBegin)) return std::string(value);
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  if (!ascii || text.size() > kMostBytes) {
    return Error{ErrorCode::kConfiguration, "AP510",
                 "a lineage of " + std::to_string(text.size()) + " bytes does not fit into an envelope"};
  }
  std::string octets;
  octets.reserve(kHead + text.size() + value.size());
  octets.append(kBegin).append(1, kForm);
  octets += static_cast<char>(text.size() >> 8);
  octets += static_cast<char>(text.size() & 0xFF);
  octets.append(text).append(value);
  return octets;
}

OpenedEnvelope OpenEnvelope(std::string_view octets) {
  if (!StartsWith(octets, kBegin)) return {octets, std::nullopt, {}};
  if (octets.size() > kBegin.size() && octets[kBegin.size()] != kForm) {
    return {octets, std::nullopt, "an envelope of a form that this version does not know"};
  }
  constexpr std::string_view kCut = "an envelope that is cut off";
  if (octets.size() < kHead) return {octets, std::nullopt, kCut};
  const auto high = static_cast<unsigned char>(octets[kHead - 2]);
  const auto low = static_cast<unsigned char>(octets[kHead - 1]);
  const std::size_t length = static_cast<std::size_t>(high) * 256 + low;
  if (octets.size() - kHead < length) return {octets, std::nullopt, kCut};
  return {octets.substr(kHead + length), octets.substr(kHead, length), {}};
}

}  // namespace antipode
