#include "history/spelling.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "antipode/wire.h"
#include "engine/json.h"
#include "lineage_rep.h"

namespace antipode::history {
namespace {

constexpr std::string_view kMessage = "_.msg";
constexpr std::size_t kLongestName = 40;
constexpr std::size_t kLongestKey = 1024;
// What branches are called in lineages (BRANCH-1): no writes of the application.
constexpr std::string_view kBranches = "antipode-branches";

Lineage WithExtensions(const Lineage& lineage, std::vector<std::string> extensions) {
  return LineageAccess::WithExtensions(lineage, std::move(extensions));
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

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
  Lineage told = lineage.extensions().empty() ? lineage : WithExtensions(lineage, {});
  if (told.SectionText(kBranches)) told = told.WithoutStore(kBranches);
  return told.Serialize();
}

Lineage Named(const Lineage& lineage, std::string_view message) {
  std::vector<std::string> extensions = lineage.extensions();
  extensions.push_back(std::string(kMessage).append(".").append(message));
  std::sort(extensions.begin(), extensions.end());
  return WithExtensions(lineage, std::move(extensions));
}

Came MessagesOf(const Lineage& lineage) {
  Came came{lineage, {}};
  std::vector<std::string> rest;
  std::vector<std::string> all = lineage.extensions();
  for (std::string& extension : all) {
    const std::string_view text = extension;
    if (text.substr(0, text.find('.', 2)) != kMessage) {
      rest.push_back(std::move(extension));
    } else if (text.size() > kMessage.size() && IsName(text.substr(kMessage.size() + 1))) {
      came.messages.emplace_back(text.substr(kMessage.size() + 1));
    }
  }
  if (rest.size() != all.size()) came.lineage = WithExtensions(lineage, std::move(rest));
  return came;
}

}  // namespace antipode::history
