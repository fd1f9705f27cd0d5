// What this process knows of one tap; it outlives the connections to it.
#ifndef ANTIPODE_RABBITMQ_TAP_MEMORY_H_
#define ANTIPODE_RABBITMQ_TAP_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "marks.h"

namespace antipode::rabbitmq {

// The marks that have arrived, those that somebody waits for, and up to where the stream has been read. For the thread
// that asks that server alone.
class TapMemory {
 public:
  explicit TapMemory(std::size_t remember) : remember_(remember), seen_(remember) {}

  // Whether a message with this mark has arrived; if not, its arrival will be told.
  bool Want(const std::string& mark);
  // A message has arrived; true if somebody waits for it, who is to be told now.
  bool Note(const std::string& mark);

  std::size_t size() const { return seen_.size(); }
  std::size_t wanted() const { return wanted_.size(); }

  // The place in the stream. Offsets begin anew where a stream is declared anew, so a place is known by its message.

  // The message at this offset, which looks so, has been read.
  void Read(std::int64_t offset, std::size_t looks);
  // The offset of the last message that was read; nothing before the first.
  std::optional<std::int64_t> offset() const { return offset_; }
  // From which offset to read on, where the stream's last chunk begins with a message that looks so.
  //
  // From the last message that was read, inclusive: `IsElsewhere` then says whether it is the same stream. Within the
  // last chunk, from its beginning. In a stream that is not the same, from the last messages that are remembered, or
  // its beginning.
  std::int64_t Resume(std::int64_t chunk, std::size_t looks);
  // Whether a message at the last offset that was read is another one than then: another stream.
  bool IsElsewhere(std::int64_t offset, std::size_t looks) const;
  // Forgets the place; what has arrived is not forgotten. From where to read.
  std::int64_t BeginAnew(std::int64_t chunk);

 private:
  const std::size_t remember_;
  Marks seen_;
  std::unordered_set<std::string> wanted_;
  std::optional<std::int64_t> offset_;
  std::deque<std::pair<std::int64_t, std::size_t>> places_;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_TAP_MEMORY_H_
