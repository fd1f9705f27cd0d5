// A test's own environment: variables, settings, log lines and counts that no other test sees.
#ifndef ANTIPODE_TESTS_ENVIRONMENT_H_
#define ANTIPODE_TESTS_ENVIRONMENT_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace antipode::testing {

using Variables = std::map<std::string, std::string>;

// While it lives no `ANTIPODE_*` variable is set but these, settings and counts begin anew, and log lines are kept.
class Isolation {
 public:
  explicit Isolation(const Variables& variables = {});
  Isolation(const Isolation&) = delete;
  Isolation& operator=(const Isolation&) = delete;
  ~Isolation();

  // The lines so far: `WARNING text`.
  std::vector<std::string> lines() const;
  // Whether a line has this in it.
  bool Said(std::string_view text) const;
  // How often an instrument counted, with all of these attributes: `reason=orphan`.
  static std::uint64_t Counted(std::string_view instrument, const std::vector<std::string>& attributes = {});

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_ENVIRONMENT_H_
