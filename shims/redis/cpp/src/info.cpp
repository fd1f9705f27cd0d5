#include "info.h"

#include <charconv>

namespace antipode::redis {
namespace {

template <class T>
std::optional<T> Number(std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Ordered> Replication::Position() const {
  if (primary && !backlog) return std::nullopt;
  if (!primary && offset <= 1) return std::nullopt;  // it has never followed anybody: what it holds came from a file
  return Ordered{epoch, offset};
}

std::string_view WordOf(std::string_view info, std::string_view name) {
  std::size_t at = 0;
  while (at < info.size()) {
    const std::size_t found = info.find("\r\n", at);
    const std::size_t end = found == std::string_view::npos ? info.size() : found;
    const std::string_view line = info.substr(at, end - at);
    if (line.size() > name.size() && line[name.size()] == ':' && line.substr(0, name.size()) == name) {
      return line.substr(name.size() + 1);
    }
    at = end + 2;
  }
  return {};
}

std::optional<Replication> ParseReplication(std::string_view reply) {
  const std::string_view role = WordOf(reply, "role");
  const std::string_view id = WordOf(reply, "master_replid");
  if (role.empty() || id.size() < kEpochDigits) return std::nullopt;
  Replication now;
  now.primary = role == "master";
  now.epoch = id.substr(0, kEpochDigits);
  // A replica with its link down still says here what it has applied; ROLE would say -1.
  const auto offset = Number<std::int64_t>(WordOf(reply, now.primary ? "master_repl_offset" : "slave_repl_offset"));
  if (!offset) return std::nullopt;
  now.offset = *offset < 0 ? 0 : static_cast<std::uint64_t>(*offset);
  const std::string_view second = WordOf(reply, "second_repl_offset");
  if (const auto end = Number<std::int64_t>(second); end) {
    if (*end > 0) {
      now.before = WordOf(reply, "master_replid2").substr(0, kEpochDigits);
      now.before_end = static_cast<std::uint64_t>(*end);
    }
  } else if (!second.empty()) {
    return std::nullopt;
  }
  now.backlog = WordOf(reply, "repl_backlog_active") == "1";
  now.read_only = !now.primary && WordOf(reply, "slave_read_only") != "0";
  now.link = now.primary || WordOf(reply, "master_link_status") == "up";
  return now;
}

}  // namespace antipode::redis
