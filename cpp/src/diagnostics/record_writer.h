/// \file
/// Writes dry-run records to a file, from one thread, bounded and rotated; never an error to the application (REC-2).
#ifndef ANTIPODE_SRC_DIAGNOSTICS_RECORD_WRITER_H_
#define ANTIPODE_SRC_DIAGNOSTICS_RECORD_WRITER_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/time.h"

namespace antipode {

/// A bounded queue, and a thread that empties it into `<folder>/<host>-<pid>-<start>.jsonl`.
class RecordWriter {
 public:
  /// What else is to be written, asked about once a minute by the writer's thread.
  using Due = std::vector<std::string> (*)();

  RecordWriter() = default;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  virtual ~RecordWriter() = default;

  /// The one of this process.
  static RecordWriter& Instance();

  /// Begins to ask for what is due, before there is any record.
  void Start(Due due);

  /// Queues a line; past the bound, or where the process ends, it is dropped and counted.
  void Put(std::string line);

  /// Waits until what was put so far is on disk; false where that took too long.
  bool Flush(Duration timeout);

  /// Whether it writes, or has begun to ask for what is due, in this process.
  bool used() const;

  /// Writes what is left, for a second at most, and ends the thread.
  void End();

  /// Records that were not written: the queue was full, or the disk failed.
  std::uint64_t dropped() const;

  // Forks: what is queued is the parent's (SCOPE-13)
  void BeforeFork() { mutex_.lock(); }
  void AfterForkInParent() { mutex_.unlock(); }
  void AfterForkInChild();

 protected:
  /// Queues a line; false, and it is as it was, past the bound or where the process ends.
  bool Queue(std::string& line);
  /// Counts lines that are not written, and says so.
  void Drop(const std::string& why, std::uint64_t count);
  /// Writes these lines to the file, on the writer's own thread; why not, where that failed.
  virtual std::string Append(const std::vector<std::string>& lines);
  /// Says that lines are not written.
  virtual void SayDropped(const std::string& why) const;

 private:
  void Ensure() noexcept;
  void Lose(const char* why, std::uint64_t count) noexcept;
  void Run();
  void WriteNow(const std::vector<std::string>& lines);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable written_;
  std::vector<std::string> queue_;
  Due due_ = nullptr;
  std::uint64_t put_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t dropped_ = 0;
  std::unique_ptr<std::thread> thread_;
  bool ending_ = false;
};

/// This process as records name it, and the time at which it began: `host`, pid, seconds since 1970.
struct ProcessName {
  std::string host;
  std::int64_t pid;
  std::int64_t start;
};
ProcessName ThisProcess();

/// How often what is due is asked for: a minute.
void SetDuePeriod(Duration period) noexcept;  // for tests

}  // namespace antipode

#endif  // ANTIPODE_SRC_DIAGNOSTICS_RECORD_WRITER_H_
