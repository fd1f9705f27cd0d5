#include "propagation/shared_caches.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "antipode/wire.h"
#include "model/text.h"

namespace antipode {
namespace {

constexpr std::string_view kControl = "cache-control";
constexpr std::string_view kExpires = "expires";
constexpr std::string_view kModified = "last-modified";
constexpr std::string_view kPlace = "content-location";
constexpr std::string_view kAccelerated = "x-accel-expires";
constexpr std::array<std::string_view, 5> kNeverKept = {"PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"};
// Whose answers are kept only where they say of which resource they are.
constexpr std::array<std::string_view, 2> kKeptByPlace = {"POST", "PATCH"};
// Statuses of which a cache may guess how long they are fresh; 0 is one that is not known (a library may say -1).
constexpr std::array<int, 13> kGuessed = {0, 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

using Lines = std::vector<std::string>;

struct Directive {
  std::string word;
  std::optional<std::string> value;
};
using Directives = std::vector<Directive>;

template <typename All, typename One>
bool Has(const All& all, const One& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Says it for some caches alone, and above `Cache-Control` there; those of vendors end like the first.
bool IsTargeted(std::string_view lower) {
  return lower == "cdn-cache-control" || lower == "surrogate-control" || EndsWith(lower, "-cdn-cache-control");
}

void AddDirectives(std::string_view line, Directives& found) {
  ForEachPart(line, ',', [&found](std::string_view directive) {
    const std::size_t equals = directive.find('=');
    Directive each{std::string(Trim(directive.substr(0, equals), wire::kWhiteSpace)), std::nullopt};
    if (equals != std::string_view::npos) each.value = std::string(directive.substr(equals + 1));
    found.push_back(std::move(each));
  });
}

std::string WithoutQuotedCommas(std::string line) {
  bool is_quoted = false;
  bool is_escaped = false;
  for (char& c : line) {
    if (is_quoted && c == ',') c = ' ';
    if (is_escaped) {
      is_escaped = false;
    } else if (is_quoted && c == '\\') {
      is_escaped = true;
    } else if (c == '"') {
      is_quoted = !is_quoted;
    }
  }
  return line;
}

bool IsNamed(std::string_view word, const Directives& directives) {
  return std::any_of(directives.begin(), directives.end(), [word](const Directive& each) { return each.word == word; });
}

// Returns whether a word is there, each time by itself: with the name of a field it speaks of that field alone.
bool StandsAlone(std::string_view word, const Directives& directives) {
  return IsNamed(word, directives) && std::all_of(directives.begin(), directives.end(), [word](const Directive& each) {
           return each.word != word || !each.value;
         });
}

bool IsNotZero(std::string_view value) {
  const std::string_view digits = Trim(value, " \t\"");
  return digits.empty() || digits.find_first_not_of('0') != std::string_view::npos;
}

// Returns whether these directives let a cache keep it; `otherwise`: where they say nothing of its age.
bool Shares(const Lines& lines, bool otherwise) {
  const std::string line = Lower(Joined(lines, ","));
  Directives exact;
  AddDirectives(WithoutQuotedCommas(line), exact);
  Directives loose = exact;
  AddDirectives(line, loose);  // some caches split at each comma
  if (IsNamed("public", loose)) return true;
  const bool is_understood = IsNamed("must-understand", loose);
  for (const std::string_view word : {"private", "no-cache", "no-store"}) {
    if (StandsAlone(word, exact) && !(is_understood && word == "no-store")) return false;
  }
  const std::string_view age = IsNamed("s-maxage", exact) ? "s-maxage" : "max-age";
  for (const Directive& each : loose) {
    const bool is_age = each.word == age || each.word == "s-maxage" || each.word == "stale-while-revalidate" ||
                        each.word == "stale-if-error";
    if (is_age && IsNotZero(each.value.value_or(std::string()))) return true;
  }
  return otherwise && !IsNamed(age, exact);
}

// A moment's year, month, day, hour, minute and second.
using Moment = std::array<int, 6>;

Moment Now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec};
}

// The moment of an IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`; nothing where it is none.
std::optional<Moment> MomentOf(std::string_view date) {
  constexpr std::string_view kForm = "aaa, 00 aaa 0000 00:00:00 GMT";
  if (date.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = date[i];
    const bool is_right = kForm[i] == '0'   ? c >= '0' && c <= '9'
                          : kForm[i] == 'a' ? (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                                            : c == kForm[i];
    if (!is_right) return std::nullopt;
  }
  const auto month = std::find(kMonths.begin(), kMonths.end(), date.substr(8, 3));
  if (month == kMonths.end()) return std::nullopt;
  const auto number = [date](std::size_t from, std::size_t length) {
    int value = 0;
    for (const char c : date.substr(from, length)) value = value * 10 + (c - '0');
    return value;
  };
  return Moment{number(12, 4), static_cast<int>(month - kMonths.begin()) + 1, number(5, 2), number(17, 2),
                number(20, 2), number(23, 2)};
}

// Returns whether every cache takes it for past: no date at all is (RFC 9111, 5.3), an old form of one may not be.
bool IsPast(std::string_view expires) {
  const std::string_view text = Trim(expires, " \t");
  const std::string_view digits = text.substr(text.empty() || text.front() != '-' ? 0 : 1);
  if (digits.find_first_not_of("0123456789") == std::string_view::npos) return true;
  const std::optional<Moment> moment = MomentOf(text);
  return moment && *moment <= Now();
}

}  // namespace

bool TellsCaches(std::string_view name) {
  const std::string lower = Lower(name);
  return IsTargeted(lower) || lower == kControl || lower == kExpires || lower == kModified || lower == kPlace ||
         lower == kAccelerated;
}

bool IsShared(const Carrier& headers, std::string_view method, int status) {
  if (Has(kNeverKept, method)) return false;
  std::map<std::string, Lines, std::less<>> found;
  headers.ForEach([&found](std::string_view name, std::string_view line) {
    if (TellsCaches(name)) found[Lower(name)].emplace_back(line);
  });
  const bool is_by_place = Has(kKeptByPlace, method);
  if ((found.empty() && status != kNotModified) || (is_by_place && found.find(kPlace) == found.end())) return false;
  const auto lines = [&found](std::string_view name) {
    const auto each = found.find(name);
    return each == found.end() ? Lines() : each->second;
  };
  const Lines accelerated = lines(kAccelerated);
  if (std::any_of(accelerated.begin(), accelerated.end(), IsNotZero)) return true;
  const Lines expires = lines(kExpires);
  const bool is_guessed =
      status == kNotModified || (!lines(kModified).empty() && Has(kGuessed, std::max(status, 0)));
  const bool is_past = std::all_of(expires.begin(), expires.end(), IsPast);
  const bool otherwise = expires.empty() ? is_guessed && !is_by_place : !is_past;
  if (Shares(lines(kControl), otherwise)) return true;
  return std::any_of(found.begin(), found.end(),
                     [](const auto& each) { return IsTargeted(each.first) && Shares(each.second, false); });
}

}  // namespace antipode
