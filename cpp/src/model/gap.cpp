#include "antipode/gap.h"

#include <string_view>
#include <utility>

namespace antipode {
namespace {

constexpr std::pair<std::string_view, MessageCode> kCodes[] = {
    {"branch", "AP210"},    {"budget", "AP510"},     {"implausible", "AP407"}, {"malformed", "AP405"},
    {"oversize", "AP408"},  {"pending", "AP411"},    {"rights", "AP506"},      {"seal", "AP403"},
    {"streaming", "AP416"}, {"unanswered", "AP417"}, {"unscoped", "AP418"},    {"unfit", "AP208"},
    {"untrusted", "AP403"},
};

}  // namespace

MessageCode Gap::message_code() const {
  for (const auto& [word, code] : kCodes) {
    if (word == reason) return code;
  }
  return "AP517";  // a shim's word: it could not tell the version of a write
}

}  // namespace antipode
