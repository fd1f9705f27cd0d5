// Rest mode `field`: a hash's lineage in a field of its own, written in the same atomic step (spec SHIM-9).
//
// A hash is written field by field, by many scopes: what rests beside it is the join of their lineages. A hash that is
// deleted and written anew begins anew.
#ifndef ANTIPODE_REDIS_FIELD_H_
#define ANTIPODE_REDIS_FIELD_H_

#include <hiredis/hiredis.h>

#include <string>
#include <string_view>

#include "commands.h"
#include "shown.h"

namespace antipode::redis::field {

inline constexpr std::string_view kField = "antipode";

// Whether a command writes fields of a hash.
bool Writes(const Words& words);

// Whether it reads a hash, in which a lineage may rest.
bool Reads(const Words& words);

// The command that is sent for a hash write: the same one, packed, with the lineage, in one atomic script.
std::string WireWrite(const Words& words, std::string_view text);

// The command that is sent for a hash read, packed, so that our field can be left out of its reply.
std::string WireRead(const Words& words);

// The question for what rests beside this read's hash, packed.
std::string AskBeside(const Words& words);

// How the reply of a command is to be read.
Shown Answers(const Words& words);

// Takes our field out of a reply; what was in it, where the reply has it.
Beside Hide(const Shown& shown, redisReply& reply, const std::string& store, bool lineage_in);

}  // namespace antipode::redis::field

#endif  // ANTIPODE_REDIS_FIELD_H_
