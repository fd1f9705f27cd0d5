#include "unsure.h"

#include <algorithm>

#include "statements.h"

namespace antipode::postgresql {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& each : lower) {
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  }
  return lower;
}

bool IsOfAName(char each) {
  return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') || each == '_' || each == '$' ||
         static_cast<unsigned char>(each) >= 0x80;
}

bool HasWord(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !IsOfAName(text[at - 1])) && (end == text.size() || !IsOfAName(text[end]))) return true;
  }
  return false;
}

}  // namespace

const char* const kUnsureQuestion = R"sql(WITH RECURSIVE own AS (
 SELECT p.oid, p.proname, p.pronargs, p.proargtypes FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
 WHERE p.provolatile = 'v' AND p.prokind <> 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'antipode')),
operators AS (SELECT o.oid, o.oprname FROM pg_operator AS o JOIN own ON own.oid = o.oprcode),
means AS (
 SELECT 'pg_proc'::regclass AS class, oid FROM own UNION ALL SELECT 'pg_operator'::regclass, oid FROM operators),
relations AS (
 (SELECT r.ev_class AS oid FROM pg_rewrite AS r JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
   AND d.objid = r.oid JOIN means AS m ON m.class = d.refclassid AND m.oid = d.refobjid
  UNION
  SELECT l.polrelid FROM pg_policy AS l JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass
   AND d.objid = l.oid JOIN means AS m ON m.class = d.refclassid AND m.oid = d.refobjid
  UNION
  SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind = 'v' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND pg_get_viewdef(c.oid) ~* '\m(nextval|setval|lo_\w+|lowrite|pg_logical_emit_message)\s*\(')
 UNION
 SELECT r.ev_class FROM relations AS v JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
  AND d.refobjid = v.oid AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite AS r ON r.oid = d.objid)
SELECT 'function', proname FROM own
UNION SELECT 'word', proname FROM own JOIN pg_type AS t ON t.oid = own.proargtypes[0]
 WHERE own.pronargs = 1 AND t.typtype = 'c'
UNION SELECT 'word', c.relname FROM relations AS v JOIN pg_class AS c ON c.oid = v.oid
UNION SELECT 'operator', oprname FROM operators)sql";

UnsureNames::UnsureNames(const std::vector<std::pair<std::string, std::string>>& rows) {
  for (const auto& [what, name] : rows) {
    std::string lower = Lower(name);
    if (what == "operator") {
      operators_.push_back(std::move(lower));
    } else if (what != "function" || IsHarmless(lower)) {  // any other call is unsure by itself
      words_.push_back(std::move(lower));
    }
  }
}

bool UnsureNames::AreIn(std::string_view text) const {
  if (words_.empty() && operators_.empty()) return false;
  const std::string lower = Lower(text);
  const auto has = [&](const std::string& sign) { return lower.find(sign) != std::string::npos; };
  return std::any_of(operators_.begin(), operators_.end(), has) ||
         std::any_of(words_.begin(), words_.end(), [&](const std::string& word) { return HasWord(lower, word); });
}

}  // namespace antipode::postgresql
