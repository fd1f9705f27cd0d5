// Text from outside, or from a programmer, as it may stand in a message.
#ifndef ANTIPODE_SRC_MODEL_QUOTE_H_
#define ANTIPODE_SRC_MODEL_QUOTE_H_

#include <string>
#include <string_view>
#include <vector>

namespace antipode {

// In single quotes, with what is no printable ASCII as `\xNN`.
std::string Quoted(std::string_view text);

// As it is where it is short and printable, else cut at 64 characters and quoted.
std::string Shown(std::string_view text);

// Names from outside: five at most, and how many more (OBS-12).
std::string ShownList(const std::vector<std::string>& names);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_QUOTE_H_
