#include "antipode/keys.h"

#include <algorithm>

#include "antipode/wire.h"
#include "model/quote.h"
#include "model/text.h"

namespace antipode {
namespace {

constexpr std::size_t kLeastKey = 16;
constexpr std::size_t kLongestId = 32;
constexpr std::string_view kBlank = " \t\r\v\f";

Error Bad(const std::string& words) { return Error{ErrorCode::kConfiguration, "AP304", words}; }

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!(line = Trim(line, kBlank)).empty()) {
    const std::size_t end = std::min(line.find_first_of(kBlank), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

bool Has(const Keys::Items& items, std::string_view id) {
  return std::any_of(items.begin(), items.end(), [id](const auto& item) { return item.first == id; });
}

}  // namespace

Result<Keys> Keys::Make(Items items) {
  Keys keys;
  for (auto& [id, octets] : items) {
    std::string spelled = wire::Spell(id);
    if (spelled.empty() || spelled.size() > kLongestId) {
      return Bad("a seal key's id has 1 to " + std::to_string(kLongestId) + " characters: " + Quoted(id));
    }
    if (octets.size() < kLeastKey) {
      return Bad("the seal key " + Quoted(id) + " has " + std::to_string(octets.size()) + " octets; at least " +
                 std::to_string(kLeastKey));
    }
    if (Has(keys.items_, id)) return Bad("the key id " + Quoted(id) + " stands twice");
    keys.spelled_.emplace_back(std::move(spelled), octets);
    keys.items_.emplace_back(std::move(id), std::move(octets));
  }
  return keys;
}

Result<Keys> Keys::ParseFile(std::string_view contents, const std::string& origin) {
  Items items;
  int number = 0;
  for (const std::string_view line : SplitAt(contents, '\n')) {
    ++number;
    const std::string where = origin + ", line " + std::to_string(number) + ": ";
    const std::vector<std::string_view> fields = Fields(line);
    if (fields.empty() || fields[0][0] == '#') continue;
    if (fields.size() != 2) return Bad(where + "want `id base64`");
    if (Has(items, fields[0])) return Bad(where + "the key id " + Quoted(fields[0]) + " stands twice");
    auto octets = Base64Decoded(fields[1]);
    if (!octets) return Bad(where + "the key " + Quoted(fields[0]) + " is no base64");
    items.emplace_back(fields[0], std::move(*octets));
  }
  if (items.empty()) return Bad(origin + " holds no key; want one `id base64` a line");
  Result<Keys> keys = Make(std::move(items));
  if (!keys) return Bad(origin + ": " + keys.error().Words());
  return keys;
}

std::vector<std::string> Keys::ids() const {
  std::vector<std::string> ids;
  for (const auto& item : items_) ids.push_back(item.first);
  return ids;
}

const std::string* Keys::Spelled(std::string_view id) const {
  const auto found =
      std::find_if(spelled_.begin(), spelled_.end(), [id](const auto& item) { return item.first == id; });
  return found == spelled_.end() ? nullptr : &found->second;
}

}  // namespace antipode
