package dev.antipode.postgresql;

import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Whether dry-run may send a statement once more, by its text (REC-23, {@code spec/vectors/repeatable-statements.json}): it
 * changes nothing and says the same of the same data, as far as a text can say so. When unsure, it may not.
 */
final class Repeatable {
  private static final Set<String> FIRST = Set.of("select", "with", "table");
  private static final Set<String> NEVER = words("""
      insert update delete merge into for lock procedure tablesample current_date current_time current_timestamp localtime
      localtimestamp current_user session_user system_user user current_role current_schema current_catalog nextval next
      """);
  private static final Set<String> WITH_ORDER = Set.of("limit", "offset", "fetch");

  /** What may stand before a parenthesis: words of the grammar, and functions that depend on nothing but their arguments. */
  static final Set<String> BEFORE_PARENTHESIS = words("""
      abs all and any array as asc avg between bigint bit_and bit_length bit_or bool_and bool_or boolean btrim by case
      cast ceil ceiling char char_length character_length coalesce concat concat_ws count cume_dist date_trunc decimal
      dense_rank desc distinct else every except exists extract filter first_value floor from greatest group having in
      initcap inner intersect interval is join jsonb_array_length lag last_value lateral lead least left length like
      ln lower lpad ltrim max md5 min mod not nth_value ntile nullif numeric octet_length on or order over partition
      percent_rank position power rank repeat replace reverse right round row row_number rpad rtrim select sign some
      split_part sqrt substr substring sum then to_char trim trunc union upper using values varchar when where
      width_bucket with within
      """);

  private static final String REST_OF_WORD = "[\\w$\\x{80}-\\x{10ffff}]";

  /** Names, words, and numbers or places of parameters, each with the letter that follows at once. */
  private static final Pattern PIECE = Pattern.compile(
      "\"[^\"]*+\"|[A-Za-z_\\x{80}-\\x{10ffff}]" + REST_OF_WORD + "*+"
          + "|(?:0[xX][0-9a-fA-F]++|[0-9][0-9_]*+(?:[eE][0-9]*+)?+|\\$[0-9]++|\\?)(" + REST_OF_WORD + ")?+");

  private static final Memo<Boolean> KNOWN = new Memo<>(Repeatable::judge);

  private Repeatable() {}

  private static Set<String> words(String text) {
    return Set.of(text.strip().split("\\s+"));
  }

  /** Whether this text may be sent once more. */
  static boolean is(String text) {
    return KNOWN.of(text);
  }

  private static boolean judge(String text) {
    boolean byDefault = judgeBare(StatementText.without(text, false));
    // Where a backslash stands, a setting of the session says whether a literal ends there.
    return byDefault && (text.indexOf('\\') < 0 || judgeBare(StatementText.without(text, true)));
  }

  private static boolean judgeBare(String bare) {
    if (bare == null || hasNumberInWord(bare)) {
      return false;
    }
    List<String> all = StatementWords.of(bare);
    int end = all.size();
    while (end > 0 && all.get(end - 1).equals(";")) {
      end--;
    }
    List<String> words = all.subList(0, end);
    if (words.isEmpty() || !FIRST.contains(words.get(0))) {
      return false;
    }
    boolean isOrdered = words.contains("order");
    for (int at = 0; at < words.size(); at++) {
      String word = words.get(at);
      boolean isNone = NEVER.contains(word)
          || word.startsWith("pg_")
          || !isOrdered && WITH_ORDER.contains(word)
          || word.equals(";")
          || word.equals("@")
          || word.equals("=") && words.get(at - 1).equals(":")
          || word.equals("(") && !mayStandBefore(words, at);
      if (isNone) {
        return false;
      }
    }
    return true;
  }

  /** Servers before version 15 end a number where letters begin: {@code 1FOR UPDATE} locks. */
  private static boolean hasNumberInWord(String bare) {
    for (Matcher piece = PIECE.matcher(bare); piece.find(); ) {
      if (piece.group(1) != null) {
        return true;
      }
    }
    return false;
  }

  /** Whether what stands before this parenthesis calls nothing that is not known. */
  private static boolean mayStandBefore(List<String> words, int parenthesis) {
    String before = words.get(parenthesis - 1);
    if (StatementWords.isName(before)) {
      boolean isQualified = parenthesis > 1 && words.get(parenthesis - 2).equals(".");
      return BEFORE_PARENTHESIS.contains(before) && !isQualified;
    }
    // Behind a name that is written in codes, which may end with a literal, or the sign that it cannot be told from.
    return !before.equals(StatementWords.CODED) && !before.equals(StatementWords.LITERAL);
  }
}
