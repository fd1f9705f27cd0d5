#include "environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "antipode/logs.h"
#include "antipode/propagation.h"
#include "antipode/settings.h"
#include "diagnostics/measured.h"
#include "model/text.h"
#include "scope/context.h"

extern char** environ;

namespace antipode::testing {
namespace {

void UnsetOurs() {
  std::vector<std::string> names;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view line = *each;
    if (StartsWith(line, "ANTIPODE_")) names.emplace_back(line.substr(0, line.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void BeginAnew() {
  ResetSettings();
  SetPropagationFormats(Formats());
  logs::Reset();
  telemetry::Reset();
  context::ForgetLineages();
}

}  // namespace

Isolation::Isolation(const Variables& variables) {
  UnsetOurs();
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  BeginAnew();
  SetLogSink([this](LogLevel level, std::string_view line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(std::string(ToString(level)) + " " + std::string(line));
  });
}

Isolation::~Isolation() {
  SetLogSink(nullptr);
  UnsetOurs();
  BeginAnew();
}

std::vector<std::string> Isolation::lines() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lines_;
}

bool Isolation::Said(std::string_view text) const {
  for (const std::string& line : lines()) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

std::uint64_t Isolation::Counted(std::string_view instrument, const std::vector<std::string>& attributes) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : telemetry::Counts()) {
    if (!StartsWith(name, std::string(instrument) + "{")) continue;
    const bool all = std::all_of(attributes.begin(), attributes.end(), [&n = name](const std::string& attribute) {
      return n.find("antipode." + attribute + ",") != std::string::npos ||
             n.find("antipode." + attribute + "}") != std::string::npos;
    });
    if (all) sum += count;
  }
  return sum;
}

}  // namespace antipode::testing
