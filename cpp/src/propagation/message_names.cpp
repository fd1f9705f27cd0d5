#include "propagation/message_names.h"

#include <algorithm>
#include <utility>

#include "model/lineage_rep.h"

namespace antipode {
namespace {

constexpr std::string_view kMessage = "_.msg";
constexpr std::size_t kLongestName = 40;

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

Lineage NamedServers(const Lineage& lineage, std::string_view message) {
  std::vector<std::string> extensions = lineage.extensions();
  extensions.push_back(std::string(kMessage).append(".").append(message));
  std::sort(extensions.begin(), extensions.end());
  return LineageAccess::WithExtensions(lineage, std::move(extensions));
}

NamedMessages MessagesOf(const Lineage& lineage) {
  NamedMessages came{lineage, {}};
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
  if (rest.size() != all.size()) came.lineage = LineageAccess::WithExtensions(lineage, std::move(rest));
  return came;
}

}  // namespace antipode
