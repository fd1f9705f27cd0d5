#include "antipode/message_code.h"

#include <algorithm>

namespace antipode {

std::string WithCode(std::string_view words, MessageCode code) {
  std::string text(words);
  if (code.empty()) return text;
  return text.insert(std::min(text.find('\n'), text.size()), " [" + std::string(code.text()) + "]");
}

}  // namespace antipode
