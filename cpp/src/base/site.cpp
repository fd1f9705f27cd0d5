#include "antipode/site.h"

#include <string_view>

namespace antipode {

std::string Site::ToString() const {
  std::string_view path = file_;
  const std::size_t name = path.rfind('/');
  if (name != std::string_view::npos && name > 0) {
    const std::size_t folder = path.rfind('/', name - 1);
    if (folder != std::string_view::npos) path.remove_prefix(folder + 1);
  }
  return std::string(path) + ":" + std::to_string(line_);
}

}  // namespace antipode
