// The patterns of `KEYS`: `*`, `?`, `[abc]`, `[^a]`, `[a-z]`, and `\` before any.
#ifndef ANTIPODE_REDIS_GLOB_H_
#define ANTIPODE_REDIS_GLOB_H_

#include <bitset>
#include <cstddef>
#include <string_view>
#include <vector>

namespace antipode::redis {

// A pattern, read once. A set that does not end, or is empty, is a bracket as it stands: the same in every language.
class Glob {
 public:
  explicit Glob(std::string_view pattern);

  bool Matches(std::string_view key) const;

 private:
  using Octets = std::bitset<256>;
  // One octet out of these; or, with `any`, any number of octets.
  struct Part {
    bool any = false;
    Octets octets;
  };

  static Octets SetOf(std::string_view inside);

  std::vector<Part> parts_;
};

}  // namespace antipode::redis

#endif  // ANTIPODE_REDIS_GLOB_H_
