#include "diagnostics/history_spelling.h"

#include <cstdio>

#include "antipode/wire.h"
#include "base/json.h"
#include "model/lineage_rep.h"

namespace antipode::history {
namespace {

constexpr std::size_t kLongestKey = 1024;
// What branches are called in lineages (BRANCH-1): no writes of the application.
constexpr std::string_view kBranches = "antipode-branches";

}  // namespace

std::string SpelledKey(std::string_view key) {
  std::string text;
  std::size_t characters = 0;
  for (std::size_t at = 0; at < key.size() && characters <= kLongestKey;) {
    const std::size_t length = Utf8Length(key, at);
    if (length != 0) {
      text += key.substr(at, length);
      at += length;
      ++characters;
      continue;
    }
    char escaped[8];
    characters += static_cast<std::size_t>(std::snprintf(escaped, sizeof escaped, "\\x%02x",
                                                         static_cast<unsigned>(static_cast<unsigned char>(key[at++]))));
    text += escaped;
  }
  return characters <= kLongestKey ? text : wire::HashedKey(key);
}

std::string SpelledLineage(const Lineage& lineage) {
  Lineage told = lineage.extensions().empty() ? lineage : LineageAccess::WithExtensions(lineage, {});
  if (told.SectionText(kBranches)) told = told.WithoutStore(kBranches);
  return told.Serialize();
}

}  // namespace antipode::history
