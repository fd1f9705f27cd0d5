#include "history/writer.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "antipode/logs.h"
#include "engine/in_force.h"
#include "engine/threads.h"

namespace antipode::history {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kTimesRecords = 4;

}  // namespace

Writer::Writer(std::string folder, std::string file, Gap gap)
    : folder_(std::move(folder)), file_(std::move(file)), gap_(std::move(gap)) {}

void Writer::PutLine(std::string line) {
  if (Queue(line)) return;
  if (threads::MayStart() || used() || !Append({std::move(line)})) Drop("the disk is too slow", 1);
}

bool Writer::Append(const std::vector<std::string>& lines) {
  const std::lock_guard<std::mutex> lock(file_mutex_);
  if (full_) return false;  // and counted
  std::error_code failed;
  const fs::path folder(folder_);
  fs::create_directories(folder, failed);
  if (failed) return false;
  const fs::path path = folder / file_;
  const std::uintmax_t found = fs::file_size(path, failed);
  const std::uintmax_t size = failed ? 0 : found;
  const std::uint64_t missing = dropped() - said_;
  const auto most = static_cast<std::uintmax_t>(InForce()->records_max_mib) * kTimesRecords << 20U;
  full_ = size > most;
  std::ofstream file(path, std::ios::app | std::ios::binary);
  if (full_) {
    file << gap_("full: " + file_ + " has the size that it may have", missing + lines.size()) << '\n';
    logs::Warn("history", "the history is full: " + path.string() + " (ANTIPODE_RECORDS_MAX_MIB).", "dropped");
  } else {
    if (missing > 0) file << gap_("not written", missing) << '\n';
    for (const std::string& line : lines) file << line << '\n';
  }
  file.flush();
  if (!file.good()) {  // no line that breaks off: no reader would take the file
    file.close();
    fs::resize_file(path, size, failed);
    full_ = false;
    return false;
  }
  said_ += missing;
  return true;
}

void Writer::SayDropped(const std::string& why) const {
  logs::Warn("history", "operations are missing from the history: " + why + ".", "dropped");
}

}  // namespace antipode::history
