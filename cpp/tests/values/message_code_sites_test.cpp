// OBS-14: whoever makes an error or says a line gives it a code of spec/data/messages.json. The compiler asks for a
// code; this asks whether there is such a one, and whether somebody said `None` where a user would look for one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/text.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

namespace fs = std::filesystem;

fs::path Root() { return fs::path(ANTIPODE_VECTORS).parent_path().parent_path(); }

std::string TextOf(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::set<std::string> KnownCodes() {
  std::set<std::string> codes;
  const Json file = Json::parse(TextOf(Root() / "spec/data/messages.json"));
  for (const Json& each : file.at("codes")) {
    codes.insert(each.at("code").get<std::string>());
  }
  return codes;
}

std::vector<fs::path> Sources() {
  std::vector<fs::path> folders = {Root() / "cpp/src", Root() / "cpp/include"};
  for (const auto& shim : fs::directory_iterator(Root() / "shims")) {
    for (const char* part : {"cpp/src", "cpp/include"}) {
      if (fs::exists(shim.path() / part)) folders.push_back(shim.path() / part);
    }
  }
  std::vector<fs::path> sources;
  for (const fs::path& folder : folders) {
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      const std::string end = file.path().extension().string();
      if (end == ".cpp" || end == ".h") sources.push_back(file.path());
    }
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

unsigned char Octet(char each) { return static_cast<unsigned char>(each); }

// The text with every comment made blank: lines keep their numbers, and `//` within a string stays.
std::string WithoutComments(std::string text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.substr(0, 3) == "R\"(") {
      at = std::min(text.find(")\"", at), text.size() - 2) + 1;
    } else if (text[at] == '"' || (text[at] == '\'' && at > 0 && std::isxdigit(Octet(text[at - 1])) == 0)) {
      const char quote = text[at];
      for (++at; at < text.size() && text[at] != quote; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (rest.substr(0, 2) == "//") {
      for (; at < text.size() && text[at] != '\n'; ++at) text[at] = ' ';
    }
  }
  return text;
}

// A place in a source, as a compiler says it.
struct Place {
  std::string file;
  std::string line;
};

std::ostream& operator<<(std::ostream& out, const Place& place) { return out << place.file << ':' << place.line; }

// What follows each `start` in the sources, up to the next comma or semicolon.
template <typename Each>
void ForEach(std::string_view start, const Each& each) {
  for (const fs::path& path : Sources()) {
    const std::string text = WithoutComments(TextOf(path));
    for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
      const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
      each(Place{fs::relative(path, Root()).string(), std::to_string(line)}, text, at + start.size());
    }
  }
}

std::string Argument(const std::string& text, std::size_t at) {
  return text.substr(at, std::min(text.find_first_of(",;", at), text.size()) - at);
}

// A code that stands there, or one that was handed in or belongs to what is told.
bool IsCode(std::string_view argument) {
  argument = Trim(argument, " \n");
  if (argument.size() == 7 && StartsWith(argument, "\"AP") && EndsWith(argument, "\"")) return true;
  return EndsWith(argument, "code") || EndsWith(argument, "code()") || argument == "MessageCode::None()";
}

TEST(MessageCodeSites, EveryLineHasACode) {
  int sites = 0;
  for (const char* start : {"logs::Say(", "logs::Warn(", "logs::Info(", ".Say("}) {
    ForEach(start, [&](const Place& place, const std::string& text, std::size_t at) {
      ++sites;
      EXPECT_TRUE(IsCode(Argument(text, at))) << place << ": no code in " << start << Argument(text, at);
    });
  }
  EXPECT_GE(sites, 40);
}

TEST(MessageCodeSites, EveryErrorHasACode) {
  int sites = 0;
  ForEach("ErrorCode::k", [&](const Place& place, const std::string& text, std::size_t at) {
    const std::string kind = Argument(text, at);  // `kUnproven`, or `kUnproven : ErrorCode::kTimedOut`
    const std::size_t end = at + kind.size();
    const std::string before = text.substr(at - 15, 3);
    const bool is_compared = before == "== " || before == "!= ";
    if (is_compared || kind.find_first_of("(){}") != std::string::npos) return;
    if (end >= text.size() || text[end] != ',') return;
    ++sites;
    const std::string code = Argument(text, end + 1);
    EXPECT_TRUE(IsCode(code)) << place << ": no code in ErrorCode::k" << kind << "," << code;
  });
  EXPECT_GE(sites, 50);
}

TEST(MessageCodeSites, EveryCodeIsKnown) {
  const std::set<std::string> known = KnownCodes();
  ASSERT_GE(known.size(), 80U);
  int codes = 0;
  ForEach("\"AP", [&](const Place& place, const std::string& text, std::size_t at) {
    if (std::isdigit(Octet(text[at])) == 0) return;  // as in "APPEND"
    const std::string code = "AP" + text.substr(at, text.find('"', at) - at);
    ++codes;
    EXPECT_EQ(known.count(code), 1U) << place << ": " << code << " is not in spec/data/messages.json";
  });
  EXPECT_GE(codes, 100);
}

TEST(MessageCodeSites, NoneIsForWhatIsNoMessage) {
  const std::set<std::string> allowed = {"cpp/include/antipode/message_code.h", "cpp/src/diagnostics/announcement.cpp",
                                         "cpp/src/model/barrier_result.cpp"};
  ForEach("MessageCode::None()", [&](const Place& place, const std::string&, std::size_t) {
    EXPECT_EQ(allowed.count(place.file), 1U) << place << ": a message without a code";
  });
}

}  // namespace
}  // namespace antipode::testing
