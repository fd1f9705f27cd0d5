#include "diagnostics/history_writer.h"

#include <utility>

#include "antipode/logs.h"
#include "base/in_force.h"
#include "engine/private_file.h"
#include "engine/threads.h"

namespace antipode::history {
namespace {

constexpr std::uintmax_t kTimesRecords = 4;

}  // namespace

Writer::Writer(std::string folder, std::string file, Gap gap)
    : folder_(std::move(folder)), file_(std::move(file)), gap_(std::move(gap)) {}

void Writer::PutLine(std::string line) {
  if (Queue(line)) return;
  if (threads::MayStart() || used() || !Append({std::move(line)}).empty()) Drop("the disk is too slow", 1);
}

std::string Writer::Append(const std::vector<std::string>& lines) {
  const std::lock_guard<std::mutex> lock(file_mutex_);
  if (full_) return "the history is full";  // and counted
  PrivateFile file(folder_, file_, static_cast<std::uintmax_t>(InForce()->records_folder_mib) << 20U);
  if (!file.refused().empty()) return file.refused();
  const std::uint64_t missing = dropped() - said_;
  const auto most = static_cast<std::uintmax_t>(InForce()->records_max_mib) * kTimesRecords << 20U;
  const bool full = file.size() > most;
  std::string octets;
  if (full) {
    octets = gap_("full: " + file_ + " has the size that it may have", missing + lines.size()) + '\n';
    logs::Warn("AP602", "history", "the history is full: " + file.path() + " (ANTIPODE_RECORDS_MAX_MIB).", "dropped");
  } else {
    if (missing > 0) octets = gap_("not written", missing) + '\n';
    for (const std::string& line : lines) octets.append(line).append(1, '\n');
  }
  if (!file.Append(octets)) return "the folder " + folder_ + " cannot be written";
  full_ = full;
  said_ += missing;
  return {};
}

void Writer::SayDropped(const std::string& why) const {
  logs::Warn("AP602", "history", "operations are missing from the history: " + why + ".", "dropped");
}

}  // namespace antipode::history
