#include "moments.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "tokens.h"

namespace antipode::postgresql {
namespace {

constexpr std::array<std::string_view, 6> kWords{"close", "declare", "discard", "fetch", "move", "snapshot"};

bool Holds(std::string_view text, std::string_view word) {
  const auto same = [](char c, char lower) { return (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) == lower; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

using Part = std::vector<Token>;

std::vector<Part> PartsOf(const std::vector<Token>& tokens) {
  std::vector<Part> parts(1);
  for (const Token& token : tokens) {
    if (token.IsOther(";")) {
      parts.emplace_back();
    } else {
      parts.back().push_back(token);
    }
  }
  parts.erase(std::remove_if(parts.begin(), parts.end(), [](const Part& part) { return part.empty(); }), parts.end());
  return parts;
}

bool Has(const Part& part, std::string_view word) {
  return std::any_of(part.begin(), part.end(), [word](const Token& token) { return token.IsWord(word); });
}

Past PastOf(const Part& part) {
  const std::string name = part.size() > 1 && part.back().IsName() ? part.back().text : std::string();
  if (part.front().IsWord("fetch") || part.front().IsWord("move")) return {Past::Does::kFetches, name};
  if (part.front().IsWord("close")) return {Past::Does::kCloses, part.back().IsWord("all") ? std::string() : name};
  if (part.front().IsWord("set") && Has(part, "snapshot")) return {Past::Does::kImports};
  if (part.front().IsWord("discard")) return {Past::Does::kTakes};
  if (!part.front().IsWord("declare") || part.size() < 2 || !part[1].IsName()) return {};
  // Before FOR is said what the cursor is, behind it comes its query.
  const auto query = std::find_if(part.begin(), part.end(), [](const Token& token) { return token.IsWord("for"); });
  const Part head(part.begin(), query);
  return {Past::Does::kDeclares, part[1].text, Has(head, "hold") && !Has(head, "without")};
}

// Of several statements in one text nobody can tell which comes when.
Past PastOf(const std::vector<Part>& parts) {
  if (parts.size() == 1) return PastOf(parts.front());
  const bool fetches = std::any_of(parts.begin(), parts.end(), [](const Part& part) {
    const Past::Does does = PastOf(part).does;
    return does == Past::Does::kFetches || does == Past::Does::kImports;
  });
  return {fetches ? Past::Does::kFetches : Past::Does::kNothing};
}

}  // namespace

Past PastIn(std::string_view text) {
  if (std::none_of(kWords.begin(), kWords.end(), [text](std::string_view word) { return Holds(text, word); })) {
    return {};
  }
  const Tokens tokens = Divide(text, false);
  const bool escapes = text.find('\\') != std::string_view::npos;  // then it depends on a setting
  if (!tokens.sure || tokens.spelled || (escapes && Divide(text, true).all != tokens.all)) {
    return {Past::Does::kFetches};
  }
  const std::vector<Part> parts = PartsOf(tokens.all);
  return parts.empty() ? Past() : PastOf(parts);
}

bool Moments::Covers(const std::vector<WriteId>& proved, const std::vector<WriteId>& wanted) {
  const Lineage shown(proved);
  return std::all_of(wanted.begin(), wanted.end(), [&](const WriteId& id) { return shown.Covers(id); });
}

bool Moments::CursorShows(const std::string& name, const std::vector<WriteId>& wanted) const {
  const auto found = cursors_.find(name);
  return found != cursors_.end() && Covers(found->second.proved, wanted);
}

void Moments::Sent(const Past& past, bool takes, const std::vector<WriteId>& proved) {
  if (past.does == Past::Does::kImports) {
    has_snapshot_ = true;
    shown_.clear();
  } else if ((takes || past.does == Past::Does::kTakes) && !std::exchange(has_snapshot_, true)) {
    shown_ = proved;
  }
  if (past.does == Past::Does::kDeclares) cursors_.try_emplace(past.cursor, Cursor{proved, past.holds});
}

void Moments::Done(const Past& past, const std::vector<WriteId>& proved) {
  if (past.does == Past::Does::kDeclares) cursors_[past.cursor] = {proved, past.holds};
  if (past.does == Past::Does::kCloses && past.cursor.empty()) cursors_.clear();
  if (past.does == Past::Does::kCloses) cursors_.erase(past.cursor);
}

void Moments::Over() {
  has_snapshot_ = false;
  shown_.clear();
  for (auto each = cursors_.begin(); each != cursors_.end();) {
    each = each->second.holds ? std::next(each) : cursors_.erase(each);
  }
}

void Moments::Forget() {
  Over();
  cursors_.clear();
}

}  // namespace antipode::postgresql
