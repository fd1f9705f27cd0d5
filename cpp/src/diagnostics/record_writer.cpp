#include "diagnostics/record_writer.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "antipode/logs.h"
#include "base/fork.h"
#include "base/in_force.h"
#include "engine/private_file.h"
#include "engine/threads.h"

namespace antipode {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostQueued = 10000;
constexpr int kFilesKept = 4;
constexpr Duration kExit = std::chrono::seconds(1);
std::atomic<Duration::rep> due_period{Duration(std::chrono::seconds(60)).count()};

std::int64_t SecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// `x.jsonl` becomes `x.1.jsonl`, and so on; four files are kept.
void Rotate(const fs::path& path) {
  const auto numbered = [&](int number) {
    fs::path older = path;
    return older.replace_extension("." + std::to_string(number) + ".jsonl");
  };
  std::error_code ignored;
  for (int number = kFilesKept - 2; number > 0; --number) {
    if (fs::exists(numbered(number), ignored)) fs::rename(numbered(number), numbered(number + 1), ignored);
  }
  fs::rename(path, numbered(1), ignored);
}

}  // namespace

ProcessName ThisProcess() {
  static const std::string host = [] {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? std::string(name) : std::string("localhost");
  }();
  static const std::int64_t start = SecondsNow();
  return {host, getpid(), start};
}

RecordWriter& RecordWriter::Instance() {
  static auto* const instance = [] {
    auto* made = new RecordWriter();  // outlives all threads
    AddForkPart({[made] { made->BeforeFork(); }, [made] { made->AfterForkInParent(); },
                 [made] { made->AfterForkInChild(); }});
    return made;
  }();
  return *instance;
}

void SetDuePeriod(Duration period) noexcept { due_period.store(period.count()); }

void RecordWriter::Start(Due due) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (due_ == nullptr) due_ = due;
  Ensure();
}

void RecordWriter::Ensure() noexcept {
  if (thread_ || ending_ || !threads::MayStart()) return;
  try {
    thread_ = threads::Start("antipode-record", [this] { Run(); });
  } catch (const std::exception&) {  // no thread is to be had: the next line asks for one again (BAR-61)
    return;
  }
}

bool RecordWriter::Queue(std::string& line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.size() >= kMostQueued || (!thread_ && !threads::MayStart())) return false;
  queue_.push_back(std::move(line));
  ++put_;
  Ensure();
  changed_.notify_one();
  return true;
}

void RecordWriter::Put(std::string line) {
  if (!Queue(line)) Drop("the disk is too slow", 1);
}

bool RecordWriter::Flush(Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t wanted = put_;
  return written_.wait_for(lock, timeout, [&] { return done_ >= wanted; });
}

void RecordWriter::End() {
  Flush(kExit);
  std::unique_ptr<std::thread> thread;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!thread_) return;
    ending_ = true;
    thread = std::move(thread_);
    changed_.notify_one();
  }
  thread->join();
  std::vector<std::string> late;  // what came when it had looked for the last time
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = false;
    late.swap(queue_);
    done_ += late.size();
  }
  if (!late.empty()) WriteNow(late);
}

bool RecordWriter::used() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return thread_ != nullptr;
}

std::uint64_t RecordWriter::dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

void RecordWriter::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  TimePoint asked_at = Clock::now();
  while (true) {
    const TimePoint due_at = asked_at + Duration(due_period.load());
    changed_.wait_until(lock, due_at, [this] { return ending_ || !queue_.empty(); });
    if (ending_ && queue_.empty()) return;
    std::vector<std::string> batch;
    batch.swap(queue_);
    const std::size_t put = batch.size();
    const Due due = due_;
    lock.unlock();
    if (due != nullptr && Clock::now() >= due_at) {
      asked_at = Clock::now();
      try {
        for (std::string& line : due()) batch.push_back(std::move(line));
      } catch (const std::exception& error) {  // the thread goes on for the other records
        Lose(error.what(), 1);
      }
    } else if (due == nullptr) {
      asked_at = Clock::now();
    }
    try {
      if (!batch.empty()) WriteNow(batch);
    } catch (const std::exception& error) {
      Lose(error.what(), batch.size());
    }
    batch = {};  // not under the lock
    lock.lock();
    done_ += put;
    written_.notify_all();
  }
}

void RecordWriter::WriteNow(const std::vector<std::string>& lines) {
  const std::string refused = Append(lines);
  if (!refused.empty()) Drop(refused, lines.size());
}

std::string RecordWriter::Append(const std::vector<std::string>& lines) {
  const auto now = InForce();
  const ProcessName process = ThisProcess();
  const std::string name =
      process.host + "-" + std::to_string(process.pid) + "-" + std::to_string(process.start) + ".jsonl";
  const auto most = static_cast<std::uintmax_t>(now->records_folder_mib) << 20U;
  auto file = std::make_unique<PrivateFile>(now->records, name, most);
  if (file->refused().empty() && file->size() > static_cast<std::uintmax_t>(now->records_max_mib) << 20U) {
    Rotate(file->path());
    file = std::make_unique<PrivateFile>(now->records, name, most);
  }
  if (!file->refused().empty()) return file->refused();
  std::string octets;
  for (const std::string& line : lines) octets.append(line).append(1, '\n');
  return file->Append(octets) ? std::string() : "the folder " + now->records + " cannot be written";
}

void RecordWriter::Drop(const std::string& why, std::uint64_t count) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    dropped_ += count;
  }
  SayDropped(why);
}

void RecordWriter::Lose(const char* why, std::uint64_t count) noexcept {
  try {
    Drop(why, count);
  } catch (const std::exception&) {  // they are counted, and for the words there is no memory
    return;
  }
}

void RecordWriter::SayDropped(const std::string& why) const {
  logs::Warn("AP601", "records", "dry-run records cannot be written: " + why + ".", "dropped");
}

void RecordWriter::AfterForkInChild() {
  static_cast<void>(thread_.release());  // the parent's
  queue_.clear();
  put_ = done_ = 0;
  ending_ = false;
  mutex_.unlock();
  new (&changed_) std::condition_variable();  // a thread of the parent waits on it
  new (&written_) std::condition_variable();
}

}  // namespace antipode
