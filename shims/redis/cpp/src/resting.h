// Where lineages rest beside the values of one wrapped connection: nowhere, in a field of hashes, or in envelopes.
#ifndef ANTIPODE_REDIS_RESTING_H_
#define ANTIPODE_REDIS_RESTING_H_

#include <hiredis/hiredis.h>

#include <optional>
#include <string>
#include <string_view>

#include "antipode/redis.h"
#include "antipode/result.h"
#include "commands.h"
#include "envelopes.h"
#include "shown.h"

namespace antipode::redis {

class LineagePlacement {
 public:
  explicit LineagePlacement(const Options& options);

  // What options cannot be (kConfiguration).
  static Result<void> Check(const Options& options);

  // Whether a lineage rests anywhere.
  bool any() const { return in_field_ || envelopes_.has_value(); }

  // Whether it rests in hashes.
  bool in_field() const { return in_field_; }

  // Refuses what cannot be done with a key whose value is in an envelope, before it is sent (SHIM-36).
  std::optional<Error> Refused(const Words& words) const;

  // Whether a lineage rests beside what this command writes.
  bool Writes(const Words& words) const;

  // A write as it is sent, with this text beside its values ('' for none); nothing: as it stands.
  std::optional<std::string> WireWrite(const Words& words, std::string_view text) const;

  // A read as it is sent; nothing: as it stands.
  std::optional<std::string> WireRead(const Words& words) const;

  // Whether the read is of a hash, beside which a lineage may rest.
  bool ReadsHash(const Words& words) const;

  // How a command's reply is to be read.
  Shown Answers(const Words& words) const;

  // Makes a reply what the application is to get; what rested beside it.
  Beside Show(const Shown& shown, redisReply& reply) const;

 private:
  const std::string store_;
  const bool lineage_in_;
  const bool in_field_;
  std::optional<Envelopes> envelopes_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_RESTING_H_
