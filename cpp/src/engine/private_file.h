// Files that name objects of the application: nobody else reads them, and no link leads their writer astray (spec
// REC-25).
#ifndef ANTIPODE_SRC_ENGINE_PRIVATE_FILE_H_
#define ANTIPODE_SRC_ENGINE_PRIVATE_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace antipode {

// A file of this process, open at its end; it is closed with the object.
class PrivateFile {
 public:
  // Opens `folder/name`, which this process made before, or makes it: 0600, in a folder that is made 0700 where it is
  // not there. A file of somebody else's at that name is left alone, and another name is taken (`a.jsonl`, `a-2.jsonl`
  // …). Where the folder holds `most_octets` already no file is made. `refused()` says why there is none.
  PrivateFile(const std::string& folder, const std::string& name, std::uintmax_t most_octets);
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  const std::string& refused() const { return refused_; }
  const std::string& path() const { return path_; }
  // How many octets it had when it was opened.
  std::uintmax_t size() const { return size_; }

  // Appends all of it, or, where that fails, nothing.
  bool Append(std::string_view octets);

 private:
  bool Open(const std::string& path, int flags);

  int descriptor_ = -1;
  std::string path_;
  std::string refused_;
  std::uintmax_t size_ = 0;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_ENGINE_PRIVATE_FILE_H_
