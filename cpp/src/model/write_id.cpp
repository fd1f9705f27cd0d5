#include "antipode/write_id.h"

#include "antipode/wire.h"
#include "model/quote.h"
#include "model/write_id_access.h"

namespace antipode {
namespace {

Error Mistake(const std::string& words) { return Error{ErrorCode::kConfiguration, "AP501", words}; }

Result<void> CheckStore(const std::string& store) {
  if (!store.empty() && store.size() <= wire::kMaxStore) return {};
  return Mistake("a store's name has 1 to " + std::to_string(wire::kMaxStore) + " octets: " + Quoted(store));
}

Result<void> CheckEpoch(const std::string& epoch, bool position) {
  if (epoch.empty() && position) return Mistake("a position needs an epoch");
  if (epoch.size() <= wire::kMaxEpoch) return {};
  return Mistake("an epoch has at most " + std::to_string(wire::kMaxEpoch) + " octets: " + Quoted(epoch));
}

}  // namespace

std::string ToString(const Version& version) {
  if (const auto* opaque = std::get_if<Opaque>(&version)) return opaque->mark;
  const auto& ordered = std::get<Ordered>(version);
  return ordered.epoch + "." + std::to_string(ordered.counter);
}

Result<WriteId> WriteId::Make(std::string store, std::string key, Version version) {
  if (auto checked = CheckStore(store); !checked) return checked.error();
  if (const auto* opaque = std::get_if<Opaque>(&version)) {
    if (key.empty()) return Mistake("an opaque version needs a key: a position is ordered");
    if (opaque->mark.empty()) return Mistake("an opaque version needs a mark");
  } else if (auto checked = CheckEpoch(std::get<Ordered>(version).epoch, key.empty()); !checked) {
    return checked.error();
  }
  return WriteId(std::move(store), std::move(key), std::move(version));
}

Result<WriteId> WriteId::Position(std::string store, std::string epoch, std::uint64_t counter) {
  return Make(std::move(store), std::string(), Ordered{std::move(epoch), counter});
}

std::string WriteId::Section() const {
  std::string text = wire::Spell(store_);
  text += '.';
  if (!key_.empty()) text += wire::SpellKey(key_);
  if (const Opaque* mark = opaque()) {
    text += "._.";
    text += wire::Spell(mark->mark);
  } else {
    text += '.';
    text += wire::Spell(ordered()->epoch);
    text += '.';
    text += std::to_string(ordered()->counter);
  }
  return text;
}

}  // namespace antipode
