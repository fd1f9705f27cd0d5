// Rest mode `envelope`: string values of chosen keys hold their lineage (spec SHIM-34 to SHIM-37).
//
// A value is written whole by these commands, so what rests with it is the lineage of that one write.
#ifndef ANTIPODE_REDIS_ENVELOPES_H_
#define ANTIPODE_REDIS_ENVELOPES_H_

#include <hiredis/hiredis.h>

#include <optional>
#include <string>
#include <string_view>

#include "antipode/result.h"
#include "commands.h"
#include "glob.h"
#include "shown.h"

namespace antipode::redis {

class Envelopes {
 public:
  Envelopes(std::string store, std::string pattern, bool lineage_in);

  bool Matches(std::string_view key) const { return glob_.Matches(key); }

  // Refuses what cannot be done with such keys (kConfiguration); nothing has been sent (SHIM-36).
  std::optional<Error> Refused(const Words& words) const;

  // Whether a command writes such a value.
  bool Writes(const Words& words) const;

  // How the reply of a command that answers with such values is to be read.
  Shown Answers(const Words& words) const;

  // The command that is sent for a write: the same one, packed, with the lineage's text in its values.
  std::string Closed(const Words& words, std::string_view text) const;

  // Opens the values of a reply where they stand; what was beside them.
  Beside Open(const Shown& shown, redisReply& reply) const;

 private:
  std::optional<std::string_view> RefusedKey(const std::string& name, const Words& words) const;
  Lineage OpenValue(redisReply& reply) const;

  const std::string store_;
  const std::string pattern_;
  const bool lineage_in_;
  const Glob glob_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_ENVELOPES_H_
