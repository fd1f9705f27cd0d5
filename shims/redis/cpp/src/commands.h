// What a Redis command may do to data.
#ifndef ANTIPODE_REDIS_COMMANDS_H_
#define ANTIPODE_REDIS_COMMANDS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace antipode::redis {

enum class Kind {
  kOther,        // neither reads nor writes data: it is passed on untouched
  kRead,         // reads data and changes nothing
  kWrite,        // flagged as a write: an error reply says that nothing was changed
  kMaybe,        // a script, a module's or an unknown command: may write, also where it ends with an error
  kTransaction,  // MULTI, EXEC, DISCARD
};

using Words = std::vector<std::string_view>;

// What a command with these words may do.
Kind Classify(const Words& words);

// Whether it may give data that the server has, or write what it has read there (SHIM-44): all but those of which we
// know that they answer OK or a count.
bool MayRead(const Words& words, Kind kind);

// The command's name in capitals.
std::string CommandName(const Words& words);

// A word in capitals.
std::string Spelled(std::string_view word);

// Whether one of the words in these places is this one, whatever its case.
bool Says(const Words& words, std::size_t first, std::size_t end, std::string_view word);

// Whether a read may block at the server (`XREAD … BLOCK`).
bool Blocks(const Words& words);

// Whether after this command the connection is for messages, which answer nothing.
bool TakesTheLine(const Words& words);

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_COMMANDS_H_
