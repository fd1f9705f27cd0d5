// OBS-14: whoever makes an error or says a line gives it a code of spec/data/messages.json. The compiler asks for a
// code; this asks whether there is such a one, and whether somebody said `None` where a user would look for one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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
  for (const Json& each : Json::parse(TextOf(Root() / "spec/data/messages.json")).at("codes")) {
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

// The place of a match as a compiler says it.
std::string Place(const fs::path& path, const std::string& text, std::ptrdiff_t at) {
  const auto line = std::count(text.begin(), text.begin() + at, '\n') + 1;
  return fs::relative(path, Root()).string() + ":" + std::to_string(line);
}

// What makes an error, or says a line, and the argument that is to be its code. A comparison with an error's kind is no
// site.
const std::regex kSite(R"re(([=!]=\s*)?(?:\bErrorCode::k\w+(?:\s*:\s*ErrorCode::k\w+)?\s*,)re"
                       R"re(|\blogs::(?:Say|Warn|Info)\(|\bSay\()([^,;]*))re");
// A code that stands there, or one that was handed in or belongs to what is told.
const std::regex kCode(R"re("AP\d{3}"\s*$|code(?:\(\))?\s*$|MessageCode::None\(\)\s*$)re");

class MessageCodeSites : public ::testing::Test {
 protected:
  template <typename Each>
  static void ForEach(const std::regex& what, const Each& each) {
    for (const fs::path& path : Sources()) {
      const std::string text = WithoutComments(TextOf(path));
      for (std::sregex_iterator match(text.begin(), text.end(), what), end; match != end; ++match) {
        each(path, Place(path, text, match->position()), *match);
      }
    }
  }
};

TEST_F(MessageCodeSites, EveryOneHasACode) {
  int sites = 0;
  ForEach(kSite, [&](const fs::path&, const std::string& place, const std::smatch& match) {
    if (match[1].matched) return;
    ++sites;
    EXPECT_TRUE(std::regex_search(match[2].str(), kCode)) << place << ": no code in " << match.str();
  });
  EXPECT_GE(sites, 80);
}

TEST_F(MessageCodeSites, EveryCodeIsKnown) {
  const std::set<std::string> known = KnownCodes();
  ASSERT_GE(known.size(), 80U);
  int codes = 0;
  ForEach(std::regex(R"re("(AP\d+)")re"), [&](const fs::path&, const std::string& place, const std::smatch& match) {
    ++codes;
    const std::string code = match[1].str();
    EXPECT_EQ(known.count(code), 1U) << place << ": " << code << " is not in spec/data/messages.json";
  });
  EXPECT_GE(codes, 100);
}

TEST_F(MessageCodeSites, NoneIsForWhatIsNoMessage) {
  const std::set<std::string> allowed = {"cpp/include/antipode/message_code.h", "cpp/src/engine/announcement.cpp",
                                         "cpp/src/engine/barrier_result.cpp"};
  const std::regex none(R"re(MessageCode::None\(\))re");
  ForEach(none, [&](const fs::path& path, const std::string& place, const std::smatch&) {
    EXPECT_EQ(allowed.count(fs::relative(path, Root()).string()), 1U) << place << ": a message without a code";
  });
}

}  // namespace
}  // namespace antipode::testing
