#include "glob.h"

#include <algorithm>
#include <utility>

namespace antipode::redis {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

std::size_t Index(char octet) { return static_cast<unsigned char>(octet); }

// Where a set that begins here ends; nowhere where it does not, or is empty.
std::size_t EndOfSet(std::string_view pattern, std::size_t place) {
  const std::size_t first = place + (place < pattern.size() && pattern[place] == '^' ? 1 : 0);
  for (; place < pattern.size(); ++place) {
    if (pattern[place] == '\\') {
      ++place;
    } else if (pattern[place] == ']') {
      return place > first ? place : kNone;
    }
  }
  return kNone;
}

}  // namespace

Glob::Glob(std::string_view pattern) {
  for (std::size_t place = 0; place < pattern.size(); ++place) {
    Part part;
    char octet = pattern[place];
    const std::size_t end = octet == '[' ? EndOfSet(pattern, place + 1) : kNone;
    if (octet == '*') {
      part.any = true;
    } else if (octet == '?') {
      part.octets.set();
    } else if (end != kNone) {
      std::string_view inside = pattern.substr(place + 1, end - place - 1);
      const bool negated = inside.front() == '^';
      if (negated) inside.remove_prefix(1);
      part.octets = negated ? ~SetOf(inside) : SetOf(inside);
      place = end;
    } else {
      if (octet == '\\' && place + 1 < pattern.size()) octet = pattern[++place];
      part.octets.set(Index(octet));
    }
    parts_.push_back(part);
  }
}

Glob::Octets Glob::SetOf(std::string_view inside) {
  Octets octets;
  for (std::size_t place = 0; place < inside.size(); ++place) {
    if (inside[place] == '\\' && place + 1 < inside.size()) ++place;
    std::size_t low = Index(inside[place]);
    std::size_t high = low;
    if (place + 2 < inside.size() && inside[place + 1] == '-') {
      high = Index(inside[place + 2]);
      place += 2;
    }
    if (low > high) std::swap(low, high);
    for (std::size_t each = low; each <= high; ++each) octets.set(each);
  }
  return octets;
}

bool Glob::Matches(std::string_view key) const {
  std::size_t part = 0;
  std::size_t at = 0;
  std::size_t star = kNone;  // the last `*`, and how far it reaches now
  std::size_t reached = 0;
  while (at < key.size()) {
    if (part < parts_.size() && parts_[part].any) {
      star = part++;
      reached = at;
    } else if (part < parts_.size() && parts_[part].octets.test(Index(key[at]))) {
      ++part;
      ++at;
    } else if (star != kNone) {
      part = star + 1;
      at = ++reached;
    } else {
      return false;
    }
  }
  return std::all_of(parts_.begin() + static_cast<std::ptrdiff_t>(part), parts_.end(),
                     [](const Part& each) { return each.any; });
}

}  // namespace antipode::redis
