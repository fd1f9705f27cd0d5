#include "engine/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>

#include "base/fork.h"

namespace antipode {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNames = 9;
constexpr int kWrite = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC;

// The paths that this process made; the child of a fork has other names.
struct MadePaths {
  std::mutex mutex;
  std::set<std::string> paths;
};

MadePaths& TheMade() { return ForkSafe<MadePaths, LockOrder::kInner>(); }

bool IsMade(const std::string& path) {
  const std::lock_guard<std::mutex> lock(TheMade().mutex);
  return TheMade().paths.count(path) != 0;
}

void NoteMade(const std::string& path) {
  const std::lock_guard<std::mutex> lock(TheMade().mutex);
  TheMade().paths.insert(path);
}

std::uintmax_t OctetsIn(const fs::path& folder) {
  std::uintmax_t octets = 0;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end; each.increment(failed)) {
    std::error_code none;
    const std::uintmax_t size = each->is_symlink(none) ? 0 : each->file_size(none);
    if (!none) octets += size;
  }
  return octets;
}

// The name for another try: `a.jsonl`, `a-2.jsonl` …
std::string Numbered(const std::string& name, int number) {
  if (number == 1) return name;
  const fs::path path(name);
  return path.stem().string() + "-" + std::to_string(number) + path.extension().string();
}

}  // namespace

PrivateFile::PrivateFile(const std::string& folder, const std::string& name, std::uintmax_t most_octets) {
  const fs::path place(folder);
  std::error_code failed;
  if (place.has_parent_path()) fs::create_directories(place.parent_path(), failed);
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    refused_ = "the folder " + folder + " cannot be made (" + std::strerror(errno) + ")";
    return;
  }
  for (int number = 1; number <= kMostNames; ++number) {
    const std::string path = (place / Numbered(name, number)).string();
    if (IsMade(path) && Open(path, kWrite)) return;
    if (OctetsIn(place) >= most_octets) {
      refused_ = "the folder " + folder + " is full (ANTIPODE_RECORDS_FOLDER_MIB)";
      return;
    }
    if (Open(path, kWrite | O_CREAT | O_EXCL)) {
      NoteMade(path);
      return;
    }
    refused_ = "the folder " + folder + " cannot be written (" + std::strerror(errno) + ")";
    if (errno != EEXIST) return;
  }
}

PrivateFile::~PrivateFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool PrivateFile::Open(const std::string& path, int flags) {
  descriptor_ = open(path.c_str(), flags, S_IRUSR | S_IWUSR);
  if (descriptor_ < 0) return false;
  struct stat found {};
  size_ = fstat(descriptor_, &found) == 0 ? static_cast<std::uintmax_t>(found.st_size) : 0;
  path_ = path;
  refused_.clear();
  return true;
}

bool PrivateFile::Append(std::string_view octets) {
  std::string_view rest = octets;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {  // no line that breaks off: no reader would take the file
      static_cast<void>(ftruncate(descriptor_, static_cast<off_t>(size_)) == 0);
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  size_ += octets.size();
  return true;
}

}  // namespace antipode
