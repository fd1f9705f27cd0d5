package dev.antipode.postgresql;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a statement may do, by its text: whether it writes, and whether it ends a transaction.
 *
 * <p>Where the text does not say, it may write ({@link Kind#MAYBE}), and the server is asked whether it did: a guess may
 * cost a question, but never a write.
 */
final class Statements {
  private static final Pattern FIRST = Pattern.compile("[\\s(]*([A-Za-z]+)");
  private static final String NAMES = "[A-Za-z_0-9$.\"\\x{80}-\\x{10ffff}]";
  private static final Pattern CALLED = Pattern.compile("(?<!" + NAMES + ")(" + NAMES + "++)\\s*+\\(");
  private static final Pattern WORD = Pattern.compile("[A-Za-z_]+");
  private static final Pattern ROLLBACK_PART =
      Pattern.compile("(?i)\\s*(?:rollback|abort)\\b.*\\bto\\b.*", Pattern.DOTALL);
  private static final Pattern PREPARED = Pattern.compile("(?i)\\s*(?:commit|rollback)\\s+prepared\\b");
  private static final Pattern TWO_PHASE = Pattern.compile("(?i)\\s*prepare\\s+transaction\\b");
  private static final Pattern CHAIN = Pattern.compile("(?i)\\band\\s+chain\\b");
  private static final Pattern COMMITS = Pattern.compile("(?i)\\b(?:commit|end|prepare)\\b");
  private static final Pattern TO = Pattern.compile("(?i)\\bto\\b");
  private static final Pattern FROM_OUTSIDE = Pattern.compile("(?i)\\bfrom\\s+(stdin|program|')");
  /** A name that is spelled by numbers of letters: nobody finds in it what may write. */
  private static final Pattern SPELLED = Pattern.compile("(?i)\\bu&\"");
  private static final Set<String> CHANGES = Set.of("insert", "update", "delete", "merge");
  private static final Set<String> QUERIES = Set.of("select", "with", "explain", "values", "table", "declare");
  private static final Set<String> READS = words(
      "show values table fetch move close declare listen unlisten deallocate prepare lock begin start savepoint release "
          + "checkpoint notify");

  /** Those of them that show no data; behind some a snapshot may still be set or imported, so nothing of ours is asked there. */
  private static final Set<String> BLIND = words(
      "move close declare listen unlisten deallocate prepare lock begin start savepoint release checkpoint notify");

  private static final Pattern DATA = Pattern.compile("(?i)(?<![a-z_])(?:from|table|copy)\\b");
  private static final Pattern MAY_SHOW =
      Pattern.compile("(?i)(?<![a-z_])(?:select|values|call|execute|do|copy|from|with|table|explain)\\b");
  private static final Pattern COPIES_IN =
      Pattern.compile("(?i)\\s*copy\\b[^(]*(?:\\([^()]*\\)[^()]*)?\\bfrom\\b");

  /** What gives no data of the tables that it names, or what the query of its cursor has said. */
  private static final Set<String> SHOWS_NONE = words(
      "fetch move close create alter drop truncate lock grant revoke comment vacuum analyze reindex cluster refresh insert "
          + "update delete merge prepare import security reassign");

  /** What stands before a parenthesis in a plain query, and changes nothing. */
  private static final Set<String> HARMLESS = words(
      "copy "
          + "select from where in and or not exists any all some as on using values with over by having when then else "
          + "case count sum min max avg coalesce nullif greatest least lower upper length substr substring trim left "
          + "right replace concat concat_ws now current_timestamp clock_timestamp date_trunc extract to_char to_date "
          + "to_timestamp cast array array_agg string_agg json_agg jsonb_agg json_build_object jsonb_build_object "
          + "row_to_json to_json to_jsonb jsonb_array_elements unnest generate_series row_number rank dense_rank lag "
          + "lead abs round floor ceil ceiling mod random md5 encode decode position strpos split_part regexp_replace "
          + "regexp_matches bool_and bool_or current_setting version current_database current_schema "
          + "pg_is_in_recovery pg_sleep pg_backend_pid to_regclass varchar numeric char decimal bit timestamp time "
          + "interval union except intersect limit offset distinct filter within group lateral join inner outer full "
          + "cross format quote_literal quote_ident pg_typeof age date_part");

  private static final Memo<Kind> KNOWN = new Memo<>(Statements::judge);
  private static final Memo<Boolean> NOTED = new Memo<>(Statements::mayShow);

  private Statements() {}

  private static Set<String> words(String text) {
    return new HashSet<>(Arrays.asList(text.split(" ")));
  }

  /** What a statement may do. */
  static Kind classify(String text) {
    return KNOWN.of(text);
  }

  /** Return whether a call of this name changes nothing, unless the database has a function of its own of that name. */
  static boolean isHarmless(String name) {
    return HARMLESS.contains(name.toLowerCase(Locale.ROOT));
  }

  /** Return whether a statement of this kind and text (null: any) may show data of its own, which depend on something. */
  static boolean showsData(Kind kind, String text) {
    if (kind != Kind.READ || text == null) {
      return kind != Kind.SESSION;
    }
    String bare = StatementText.without(text, false);
    Matcher first = bare == null ? null : FIRST.matcher(bare);
    return first == null || !first.lookingAt() || !BLIND.contains(first.group(1).toLowerCase(Locale.ROOT));
  }

  /**
   * Return whether observers are told of a statement (null: of which nobody knows the text) as a read: it may show data
   * (HIST-36). Of what writes, what it returns is no read.
   */
  static boolean isNoted(String text) {
    return text == null || NOTED.of(text);
  }

  private static boolean mayShow(String text) {
    Kind kind = classify(text);
    if (kind != Kind.READ && kind != Kind.MAYBE) {
      return false;
    }
    Pattern words = kind == Kind.READ ? DATA : MAY_SHOW;
    return showsAny(StatementText.without(text, false), words)
        || text.indexOf('\\') >= 0 && showsAny(StatementText.without(text, true), words);
  }

  private static boolean showsAny(String bare, Pattern words) {
    return bare == null || Arrays.stream(bare.split(";")).anyMatch(each -> shows(each, words));
  }

  private static boolean shows(String statement, Pattern words) {
    Matcher first = FIRST.matcher(statement);
    boolean showsNone = first.lookingAt() && SHOWS_NONE.contains(first.group(1).toLowerCase(Locale.ROOT));
    return !showsNone && words.matcher(statement).find() && !COPIES_IN.matcher(statement).lookingAt();
  }

  /** Return whether a text of this kind may commit, and leave a transaction open: several statements, AND CHAIN (SCOPE-25). */
  static boolean mayCommitWithin(Kind kind, String text) {
    if (kind != Kind.MAYBE || text == null) {
      return kind == Kind.MAYBE;
    }
    boolean areSeveral = withoutEnd(text.trim()).indexOf(';') >= 0 || text.toLowerCase(Locale.ROOT).contains("chain");
    return areSeveral && COMMITS.matcher(text).find();
  }

  private static Kind judge(String text) {
    Kind kind = judgeBare(StatementText.without(text, false));
    if (text.indexOf('\\') >= 0 && judgeBare(StatementText.without(text, true)) != kind) {
      return Kind.MAYBE; // it depends on a setting
    }
    return kind;
  }

  private static Kind judgeBare(String bare) {
    if (bare == null) {
      return Kind.MAYBE;
    }
    String body = withoutEnd(bare.trim());
    Matcher match = FIRST.matcher(body);
    if (!match.lookingAt()) {
      return body.isEmpty() ? Kind.READ : Kind.MAYBE; // JDBC's own form of a call begins with a brace
    }
    String first = match.group(1).toLowerCase(Locale.ROOT);
    if (body.indexOf(';') >= 0) {
      return Kind.MAYBE;
    }
    switch (first) {
      case "commit", "end", "rollback", "abort":
        return ending(first, body);
      case "prepare":
        return TWO_PHASE.matcher(body).lookingAt() ? Kind.PREPARE : Kind.READ;
      case "set", "reset", "discard":
        return Kind.SESSION;
      case "copy":
        boolean out = TO.matcher(body).find() && !FROM_OUTSIDE.matcher(body).find();
        return out ? query(first, body) : Kind.MAYBE;
      default:
        break;
    }
    if (CHANGES.contains(first)) {
      return Kind.WRITE;
    }
    if (QUERIES.contains(first)) {
      return query(first, body);
    }
    return READS.contains(first) ? Kind.READ : Kind.MAYBE;
  }

  private static String withoutEnd(String body) {
    int end = body.length();
    while (end > 0 && body.charAt(end - 1) == ';') {
      end--;
    }
    return body.substring(0, end).stripTrailing();
  }

  private static Kind ending(String first, String body) {
    if (PREPARED.matcher(body).lookingAt()) {
      return Kind.END_PREPARED;
    }
    if (CHAIN.matcher(body).find()) {
      return Kind.MAYBE;
    }
    if (first.equals("commit") || first.equals("end")) {
      return Kind.COMMIT;
    }
    return ROLLBACK_PART.matcher(body).matches() ? Kind.SESSION : Kind.ROLLBACK;
  }

  private static Kind query(String first, String body) {
    if (body.indexOf('&') >= 0 && SPELLED.matcher(body).find()) {
      return Kind.MAYBE;
    }
    Set<String> found = new HashSet<>();
    for (Matcher word = WORD.matcher(body); word.find(); ) {
      found.add(word.group().toLowerCase(Locale.ROOT));
    }
    if (!first.equals("select") && found.stream().anyMatch(CHANGES::contains)) {
      return first.equals("with") ? Kind.WRITE : Kind.MAYBE;
    }
    if (Set.of("select", "with", "explain").contains(first)
        && (found.contains("into") || found.contains("execute") || found.contains("analyze"))) {
      return Kind.MAYBE;
    }
    for (Matcher called = CALLED.matcher(body); called.find(); ) {
      // A name with a schema, or in quotes, may be the application's own function of that name.
      if (!HARMLESS.contains(called.group(1).toLowerCase(Locale.ROOT))) {
        return Kind.MAYBE;
      }
    }
    return Kind.READ;
  }
}
