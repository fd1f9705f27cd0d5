// What dry-run wrote in a test of a shim: its records, and what `antipode check` says of them.
#ifndef ANTIPODE_TESTS_RECORDED_H_
#define ANTIPODE_TESTS_RECORDED_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/settings.h"
#include "antipode/testing/isolated.h"

namespace antipode::testing {

// This process is in dry-run from here on, and every read is followed.
class Recorded {
 public:
  using Json = nlohmann::json;

  Recorded()
      : folder_(std::filesystem::path(::testing::TempDir()) / ("antipode-recorded-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    SettingWords words;
    words.mode = Mode::kDryRun;
    words.region = "b";
    words.records = folder_.string();
    words.sample = 1.0;
    EXPECT_TRUE(Configure(words).ok());
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() { std::filesystem::remove_all(folder_); }

  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    EXPECT_TRUE(FlushRecords(std::chrono::seconds(10)));
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_, none)) {
      std::ifstream text(file.path());
      for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    }
    return lines;
  }

  // Those of reads, in order, once there are so many.
  std::vector<Json> Findings(std::size_t count = 1) const {
    std::vector<Json> found;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      found.clear();
      for (const Json& line : Lines()) {
        if (line.at("kind") == "behind" || line.at("kind") == "stale") found.push_back(line);
      }
    } while (found.size() < count && std::chrono::steady_clock::now() < deadline);
    EXPECT_EQ(found.size(), count);
    found.resize(count);
    return found;
  }

  // How many of these the last summary, which is written now, has counted.
  int Counted(const std::string& what) const {
    EXPECT_TRUE(FlushRecords(std::chrono::seconds(10), true));
    int count = 0;
    for (const Json& line : Lines()) {
      if (line.at("kind") != "summary") continue;
      for (const Json& each : line.at("counts")) count += each.at("what") == what ? each.at("count").get<int>() : 0;
    }
    return count;
  }

  // What a command prints of the folder, and how it ends.
  std::pair<int, std::string> Said(const std::string& command) const {
    std::string said;
    FILE* const pipe = popen((command + " " + folder_.string() + " 2>&1").c_str(), "r");
    char octets[4096];
    while (const std::size_t size = fread(octets, 1, sizeof octets, pipe)) said.append(octets, size);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said};
  }

 private:
  const std::filesystem::path folder_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_RECORDED_H_
