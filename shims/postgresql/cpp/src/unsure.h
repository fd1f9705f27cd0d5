// What of a database makes texts unsure that look like reads: its own functions, views and operators (spec SHIM-43).
#ifndef ANTIPODE_POSTGRESQL_SRC_UNSURE_H_
#define ANTIPODE_POSTGRESQL_SRC_UNSURE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace antipode::postgresql {

// Rows of what it is (a function, an operator, or a word: a view, a table with a policy, a column that is a call) and
// its name. Asked once, when a client is wrapped.
extern const char* const kUnsureQuestion;

// A text that names one of these may write, and then the server is asked at the commit whether it did.
class UnsureNames {
 public:
  UnsureNames() = default;
  explicit UnsureNames(const std::vector<std::pair<std::string, std::string>>& rows);

  // Whether a text that is classed as a read holds one, in letters of either case.
  bool AreIn(std::string_view text) const;

 private:
  std::vector<std::string> words_;
  std::vector<std::string> operators_;
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_UNSURE_H_
