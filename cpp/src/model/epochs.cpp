#include "antipode/shim/epochs.h"

#include <algorithm>
#include <optional>

namespace antipode {
namespace {

std::optional<std::uint64_t> EndIn(const Ends* ends, const std::string& epoch) {
  if (ends == nullptr) return std::nullopt;
  const auto found = ends->find(epoch);
  return found == ends->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

Visibility JudgePosition(const std::string& epoch, std::uint64_t counter, const EpochsAt& server) {
  const bool is_current = epoch == server.current;
  std::optional<std::uint64_t> end = std::max(EndIn(server.marks, epoch), EndIn(server.known, epoch));
  if (is_current) end = std::max(end, std::optional(server.applied));
  if (end && counter <= *end) return Visibility::Visible();
  const std::string applied = std::to_string(server.applied);
  const std::string wanted = std::to_string(counter);
  if (is_current) return Visibility::NotYet("at " + epoch.substr(0, 4) + "…." + applied + ", wanted " + wanted);
  const std::string name = "epoch " + epoch.substr(0, 4) + "…";
  if (!end) {
    return Visibility::UnknownEpoch(name + " is not known there (it is at " + server.current.substr(0, 4) + "…." +
                                    applied + ")");
  }
  if (EndIn(server.marks, server.current)) {
    return Visibility::Unproven(name + " has ended there at " + std::to_string(*end) + ", wanted " + wanted +
                                    ": it may be lost",
                                UnprovenKind::kHistory);
  }
  return Visibility::NotYet(name + " is proved up to " + std::to_string(*end) + " only, wanted " + wanted);
}

}  // namespace antipode
