#include "scope/unscoped.h"

#include <string>

#include "antipode/logs.h"
#include "antipode/settings.h"
#include "base/observers.h"
#include "scope/context.h"

namespace antipode {
namespace {

Lineage Outside(const std::string& words, const Site& site, const void* but) {
  if (!context::KnowsLineages(but) || CurrentSettings()->mode == Mode::kOff) return {};
  const std::string where = site.ToString();
  Events().LineageIncomplete({"unscoped", {}, nullptr, where});
  logs::Warn("AP418", "unscoped " + where,
             "what left outside any scope (" + words +
                 ") is marked incomplete: nobody knows what it depends on. Hand the scope to the thread with "
                 "antipode::Carry(), or open one: with antipode::Scope what begins here depends on nothing before it. "
                 "site=" + where);
  return Lineage().MarkedIncomplete();
}

}  // namespace

Lineage LineageOutside(Direction direction, const Site& site) { return Outside(Words(direction), site, nullptr); }

Lineage LineageUnscoped(bool lineage_out, const Site& site, const Writing* write) {
  const auto option = lineage_out ? std::nullopt : std::optional<bool>(false);
  if (!JudgeMessageOut(*CurrentTrust(), option).accepted) return {};  // where nothing rests nothing is told as lost
  return Outside("value out", site, write);
}

}  // namespace antipode
