// Tests of recorded histories: a folder of their own, what is in it, and what `antipode check --history` says of it.
#ifndef ANTIPODE_TESTS_HISTORY_TEST_H_
#define ANTIPODE_TESTS_HISTORY_TEST_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/settings.h"
#include "antipode/testing/isolated.h"

namespace antipode::testing {

// From here on this process records a history; in a test that is isolated.
class History {
 public:
  using Json = nlohmann::json;

  History() : folder_(Temporary()) {
    std::filesystem::remove_all(folder_);
    Record(folder_.string());
  }
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  ~History() {
    Shutdown();
    Record("");
    std::filesystem::remove_all(folder_);
  }

  const std::filesystem::path& folder() const { return folder_; }

  // Records in this folder, or (empty) nowhere.
  static void Record(const std::string& folder) {
    SettingWords words;
    words.history = folder;
    EXPECT_TRUE(Configure(words).ok());
  }

  // What is written; the recording has ended as at the end of a process, and goes on where more is done.
  std::vector<Json> Lines() const {
    Shutdown();
    return Written();
  }

  std::vector<Json> Written() const {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_, none)) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    std::vector<Json> lines;
    for (const auto& file : files) {
      std::ifstream text(file);
      for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    }
    return lines;
  }

  // Those of one kind, with these fields alone, as far as they have them.
  std::vector<Json> Lines(const std::string& kind, const std::vector<std::string>& fields) const {
    std::vector<Json> found;
    for (const Json& line : Lines()) {
      if (line.at("kind") != kind) continue;
      Json told = Json::object();
      for (const std::string& field : fields) {
        if (line.contains(field)) told[field] = line.at(field);
      }
      found.push_back(std::move(told));
    }
    return found;
  }

  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const Json& line : Lines()) kinds.push_back(line.at("kind"));
    return kinds;
  }

  // What `antipode check --history` decides, as its page for programs has it.
  struct Decided {
    int exit_code;
    Json said;

    std::string verdict() const { return said.at("verdict"); }
    std::size_t violations() const { return said.at("violations").size(); }
    std::string gaps() const { return said.at("gaps").dump(); }
  };
  Decided Decide(const std::string& command) const {
    Shutdown();
    const auto [code, text] = Said(command + " check --history " + folder_.string() + " --json");
    Json said = Json::parse(text, nullptr, false);
    EXPECT_FALSE(said.is_discarded()) << text;
    return {code, std::move(said)};
  }

  // What a command prints, and how it ends.
  static std::pair<int, std::string> Said(const std::string& command) {
    std::string said;
    FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    char octets[4096];
    while (const std::size_t size = fread(octets, 1, sizeof octets, pipe)) said.append(octets, size);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said};
  }

 private:
  static std::filesystem::path Temporary() {
    static std::atomic<int> number{0};
    return std::filesystem::path(::testing::TempDir()) /
           ("antipode-history-" + std::to_string(getpid()) + "-" + std::to_string(++number));
  }

  const std::filesystem::path folder_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_HISTORY_TEST_H_
