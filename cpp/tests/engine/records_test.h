// Tests of what dry-run writes: a folder of their own for records, and what is in them.
#ifndef ANTIPODE_TESTS_ENGINE_RECORDS_TEST_H_
#define ANTIPODE_TESTS_ENGINE_RECORDS_TEST_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "antipode/telemetry.h"
#include "diagnostics/records.h"
#include "engine/fakes.h"

namespace antipode::testing {

using Json = nlohmann::json;

// A sink with a span.
class Traced : public TelemetrySink {
 public:
  explicit Traced(std::string trace = std::string(32, 'a'), std::string span = std::string(16, 'b'))
      : name_{std::move(trace), std::move(span)} {}
  void Add(const Instrument&, const Attributes&, std::uint64_t) override {}
  void Record(const Instrument&, const Attributes&, double) override {}
  void Waited(const BarrierSpan&) override {}
  std::optional<SpanName> CurrentSpan() override { return name_; }
  void Finding(const EventAttributes&) override {}

 private:
  const SpanName name_;
};

// Every record was made by this test program.
class RecordsTest : public EngineTest {
 protected:
  RecordsTest()
      : folder_(std::filesystem::path(::testing::TempDir()) / ("antipode-records-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
  }
  ~RecordsTest() override {
    Shutdown();  // who is followed still, or read again, would write into the folder while it is taken away
    std::filesystem::remove_all(folder_);
  }

  SettingWords Words(Mode mode) const {
    SettingWords words;
    words.mode = mode;
    words.region = "b";
    words.records = folder_.string();
    words.sample = 1.0;
    return words;
  }
  void Be(Mode mode) { Set(Words(mode)); }

  // The records of this kind that are on disk by now.
  std::vector<Json> Now(const std::string& kind) const {
    std::vector<Json> found;
    records::Flush(5s);
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_, none)) {
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);) {
        const Json record = Json::parse(line);
        CheckHead(record);
        if (record.at("kind") == kind) found.push_back(record);
      }
    }
    return found;
  }

  // The same, once there is one.
  std::vector<Json> Written(const std::string& kind) const {
    std::vector<Json> found;
    Until([&] { return !(found = Now(kind)).empty(); });
    return found;
  }

  // REC-1, REC-3, REC-11.
  static void CheckHead(const Json& record) {
    EXPECT_EQ(record.at("record"), 1);
    EXPECT_GT(record.at("time").get<double>(), 1.6e9);
    EXPECT_EQ(record.at("region"), "b");
    EXPECT_TRUE(record.at("service").is_string());
    EXPECT_NE(record.at("process").get<std::string>().find(":" + std::to_string(getpid()) + ":"), std::string::npos);
    if (record.contains("site")) {
      const std::string site = record.at("site");
      EXPECT_EQ(site.find("engine/"), 0U) << record;
      EXPECT_NE(site.find("_test.cpp:"), std::string::npos) << record;
    }
  }

  const std::filesystem::path folder_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENGINE_RECORDS_TEST_H_
