// Small operations on texts that several parts need.
#ifndef ANTIPODE_SRC_MODEL_TEXT_H_
#define ANTIPODE_SRC_MODEL_TEXT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace antipode {

// ASCII letters in lower case; nothing depends on the process's locale.
std::string Lower(std::string_view text);
std::string Upper(std::string_view text);

bool EqualsIgnoringCase(std::string_view a, std::string_view b);
bool StartsWith(std::string_view text, std::string_view start);
bool EndsWith(std::string_view text, std::string_view end);

// The text without these characters at both ends.
std::string_view Trim(std::string_view text, std::string_view characters);

// Visits the parts between separators, empty ones included, without keeping them: an outsider may send many.
template <typename Visit>
void ForEachPart(std::string_view text, char separator, Visit visit) {
  for (;;) {
    const std::size_t end = text.find(separator);
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

// Those parts.
std::vector<std::string_view> SplitAt(std::string_view text, char separator);

// The items of a list: between commas, white space or both (CONF-7).
std::vector<std::string> SplitList(std::string_view text);

// `a, b, c`.
std::string Joined(const std::vector<std::string>& texts, std::string_view separator);

// The octets of a base64 text with its padding; nothing where it is none.
std::optional<std::string> Base64Decoded(std::string_view text);

// ` Did you mean X?` with the name most like this one; empty where none is.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_TEXT_H_
