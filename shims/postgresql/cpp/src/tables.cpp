#include "tables.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "statements.h"
#include "tokens.h"

namespace antipode::postgresql {
namespace {

constexpr std::size_t kMostTables = 32;

// What gives no data of the tables that it names, or what the query of its cursor has said.
constexpr std::string_view kReadNothing[] = {"fetch",    "move",    "close",   "create",  "alter",    "drop",
                                             "truncate", "lock",    "grant",   "revoke",  "comment",  "vacuum",
                                             "analyze",  "reindex", "cluster", "refresh", "insert",   "update",
                                             "delete",   "merge",   "prepare", "import",  "security", "reassign"};
constexpr std::string_view kMayRead[] = {"select", "values", "call", "execute", "do",
                                         "copy",   "from",   "with", "table",   "explain"};
constexpr std::string_view kQueries[] = {"select", "values", "with", "table"};
constexpr std::string_view kEndsList[] = {"select",    "values", "where",     "group", "having", "window",
                                          "order",     "limit",  "offset",    "fetch", "for",    "union",
                                          "intersect", "except", "returning", "set"};
// Before a parenthesis in which FROM is no clause.
constexpr std::string_view kOwnFrom[] = {"extract", "substring", "trim", "overlay", "position"};
// Before the TABLE of one that is made.
constexpr std::string_view kMade[] = {"into", "temp", "temporary", "unlogged"};

template <std::size_t n>
bool IsOneOf(const std::string_view (&words)[n], const Token& token) {
  return token.type == Token::Type::kWord &&
         std::find(std::begin(words), std::end(words), token.text) != std::end(words);
}

const Token& FirstOf(const std::vector<Token>& statement) {
  static const auto& none = *new Token();
  const auto first =
      std::find_if(statement.begin(), statement.end(), [](const Token& each) { return !each.IsOther("("); });
  return first == statement.end() ? none : *first;
}

int DepthBehind(int depth, const Token& token) {
  if (token.IsOther("(")) return depth + 1;
  return token.IsOther(")") && depth > 0 ? depth - 1 : depth;
}

// Whether a COPY has its FROM outside of all parentheses.
bool CopiesIn(const std::vector<Token>& statement) {
  int depth = 0;
  return std::any_of(statement.begin(), statement.end(), [&](const Token& each) {
    depth = DepthBehind(depth, each);
    return depth == 0 && each.IsWord("from");
  });
}

bool MayRead(const std::vector<Token>& statement) {
  const Token& first = FirstOf(statement);
  if (IsOneOf(kReadNothing, first)) return false;
  if (std::none_of(statement.begin(), statement.end(), [](const Token& each) { return IsOneOf(kMayRead, each); })) {
    return false;
  }
  return !first.IsWord("copy") || !CopiesIn(statement);
}

// What several statements read.
struct Found {
  std::vector<std::string> tables;  // one more than are told where there are more
  bool reads = false;
  bool unclear = false;  // something stands in a table's place of which nobody knows what it is called

  void Add(std::string name) {
    if (tables.size() <= kMostTables && std::find(tables.begin(), tables.end(), name) == tables.end()) {
      tables.push_back(std::move(name));
    }
  }
};

// Reads one statement.
class Scanner {
 public:
  Scanner(const std::vector<Token>& tokens, Found& found) : tokens_(tokens), found_(found) {}

  void Run() {
    while (at_ < tokens_.size()) Next();
    if (levels_.back().expects) found_.unclear = true;
  }

 private:
  // What is known between two parentheses.
  struct Level {
    bool expects = false;       // a table comes next
    bool lists = false;         // in a list of FROM: behind a comma comes another one
    bool has_own_from = false;  // in extract(… from …), which is no clause
    bool in_with = false;
    bool is_recursive = false;
    std::string defines = {};  // what it is called outside: in WITH
    std::size_t named = 0;     // how many names WITH had given before it
  };

  const Token& At(std::size_t place) const {
    static const auto& none = *new Token();
    return place < tokens_.size() ? tokens_[place] : none;
  }

  void Next() {
    const Token& token = tokens_[at_];
    Level& level = levels_.back();
    if (token.IsOther("(")) {
      Level inner;
      inner.expects = std::exchange(level.expects, false);
      inner.has_own_from = IsOneOf(kOwnFrom, At(at_ - 1));
      Open(std::move(inner));
      ++at_;
    } else if (token.IsOther(")")) {
      Close();
      ++at_;
    } else if (level.expects && !IsOneOf(kQueries, token)) {
      Table(level);
    } else if (token.IsOther(",")) {
      level.expects = level.expects || level.lists;
      ++at_;
      if (level.in_with && !level.lists) Define();
    } else if (At(at_ - 1).IsOther(".") || At(at_ - 1).IsWord("as")) {
      ++at_;  // behind these, any word is a name
    } else {
      Word(level);
    }
  }

  void Open(Level level) {
    level.named = named_.size();
    levels_.push_back(std::move(level));
  }

  void Close() {
    if (levels_.size() == 1) return;
    const Level closed = std::move(levels_.back());
    levels_.pop_back();
    named_.resize(closed.named);
    if (closed.expects) found_.unclear = true;
    if (!closed.defines.empty()) named_.push_back(closed.defines);
  }

  // What stands where a table may.
  void Table(Level& level) {
    const Token& token = tokens_[at_];
    if (token.IsWord("only") || token.IsWord("lateral")) {
      ++at_;
      return;
    }
    level.expects = false;
    if (token.IsWord("rows") && At(at_ + 1).IsWord("from")) {  // functions, side by side
      at_ += 2;
      return;
    }
    const bool is_copied = At(at_ - 1).IsWord("copy");  // columns may come next, and no call
    std::vector<std::string> parts;
    bool is_known = AddPart(parts);
    while (is_known && At(at_).IsOther(".")) {
      ++at_;
      is_known = AddPart(parts);
    }
    if (!is_known) {
      found_.unclear = true;
    } else if ((is_copied || !At(at_).IsOther("(")) && (parts.size() > 1 || !IsNamed(parts.front()))) {
      std::string name = std::move(parts.front());
      for (std::size_t place = 1; place < parts.size(); ++place) name += '.' + parts[place];
      found_.Add(std::move(name));
    }
  }

  // One part of a name; false where there is none, or one of which nobody knows here what it means (U&"d\0061ta").
  bool AddPart(std::vector<std::string>& parts) {
    const Token& token = At(at_++);
    if (token.IsWord("u") && At(at_).IsOther("&") && At(at_ + 1).type == Token::Type::kQuoted) {
      at_ += 2;
      return false;
    }
    if (token.IsName()) parts.push_back(token.text);
    return token.IsName();
  }

  bool IsNamed(const std::string& name) const { return std::find(named_.begin(), named_.end(), name) != named_.end(); }

  void Word(Level& level) {
    const Token& token = tokens_[at_];
    if (IsOneOf(kEndsList, token)) level.lists = false;
    if (IsOneOf(kQueries, token)) level.expects = level.in_with = false;
    if (token.IsWord("from")) {
      if (!level.has_own_from && !IsNoClause()) level.expects = level.lists = true;
    } else if (token.IsWord("join") || (token.IsWord("table") && !IsOneOf(kMade, At(at_ - 1))) ||
               (token.IsWord("copy") && at_ == 0)) {
      level.expects = true;
    } else if (token.IsWord("with")) {
      level.is_recursive = At(at_ + 1).IsWord("recursive");
      at_ += level.is_recursive ? 2 : 1;
      Define();
      return;
    }
    ++at_;
  }

  bool IsNoClause() const {
    const Token& before = At(at_ - 1);
    return before.IsWord("delete") ||
           (before.IsWord("distinct") && (At(at_ - 2).IsWord("is") || At(at_ - 2).IsWord("not")));
  }

  // What WITH names, if it names anything here: its query comes next.
  void Define() {
    const Token& name = At(at_);
    std::size_t end = at_ + 1;
    if (At(end).IsOther("(")) {
      do {
        ++end;
      } while (end < tokens_.size() && !tokens_[end].IsOther(")") && !tokens_[end].IsOther("("));
      ++end;
    }
    if (!name.IsName() || !At(end).IsWord("as")) return;
    ++end;
    if (At(end).IsWord("not")) ++end;
    if (At(end).IsWord("materialized")) ++end;
    if (!At(end).IsOther("(")) return;
    Level& level = levels_.back();
    level.in_with = true;
    if (level.is_recursive) named_.push_back(name.text);
    Level query;
    query.defines = name.text;
    Open(std::move(query));
    at_ = end + 1;
  }

  const std::vector<Token>& tokens_;
  Found& found_;
  std::size_t at_ = 0;
  std::vector<Level> levels_ = std::vector<Level>(1);
  std::vector<std::string> named_;  // by WITH, here: no tables
};

// One statement of several.
void Read(const std::vector<Token>& statement, Found& found) {
  if (!MayRead(statement)) return;
  found.reads = true;
  Scanner(statement, found).Run();
}

Found ReadAll(std::vector<Token> tokens) {
  Found found;
  std::vector<Token> statement;
  int depth = 0;
  for (Token& token : tokens) {
    depth = DepthBehind(depth, token);
    if (depth == 0 && token.IsOther(";")) {
      Read(statement, found);
      statement.clear();
    } else {
      statement.push_back(std::move(token));
    }
  }
  Read(statement, found);
  return found;
}

}  // namespace

std::vector<std::string> TablesRead(std::string_view text) {
  const Kind kind = Classify(text);
  if (kind != Kind::kRead && !IsUnsure(kind)) return {};
  Tokens tokens = Divide(text, false);
  bool is_sure = tokens.sure && !tokens.spelled;
  if (is_sure && text.find('\\') != std::string_view::npos) {  // it may depend on a setting what is a literal
    const Tokens escaped = Divide(text, true);
    is_sure = escaped.sure && escaped.all == tokens.all;
  }
  if (!is_sure) return {std::string()};
  Found found = ReadAll(std::move(tokens.all));
  if (found.tables.empty()) {
    const bool is_unclear = found.reads && (IsUnsure(kind) || found.unclear);
    return is_unclear ? std::vector<std::string>(1) : std::vector<std::string>();
  }
  if (found.tables.size() > kMostTables) found.tables.back().clear();  // it stands for all of them
  return std::move(found.tables);
}

}  // namespace antipode::postgresql
