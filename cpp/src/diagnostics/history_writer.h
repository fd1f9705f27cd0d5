// Writes the lines of a recorded history: as dry-run's records, but nothing is rotated away (spec HIST-24).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_HISTORY_WRITER_H_
#define ANTIPODE_SRC_DIAGNOSTICS_HISTORY_WRITER_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "diagnostics/record_writer.h"

namespace antipode::history {

// One process's file in the folder of a history; what could not be written is said in it.
class Writer : public RecordWriter {
 public:
  // `gap`: the line that says why so many lines are missing.
  using Gap = std::function<std::string(std::string_view reason, std::uint64_t count)>;

  Writer(std::string folder, std::string file, Gap gap);
  ~Writer() override { RecordWriter::End(); }

  // Queues a line. Where the process ends and the writer's thread has, it is written at once.
  void PutLine(std::string line);

 protected:
  std::string Append(const std::vector<std::string>& lines) override;
  void SayDropped(const std::string& why) const override;

 private:
  const std::string folder_;
  const std::string file_;
  const Gap gap_;
  std::mutex file_mutex_;   // two write only while the process ends
  std::uint64_t said_ = 0;  // of the lines that were dropped
  bool full_ = false;
};

}  // namespace antipode::history

#endif  // ANTIPODE_SRC_DIAGNOSTICS_HISTORY_WRITER_H_
