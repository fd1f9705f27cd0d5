package dev.antipode.postgresql;

import dev.antipode.postgresql.PositionQuery.Answers;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * What of a database makes texts unsure that look like reads: its own functions, views and operators (SHIM-43). The server is
 * asked for their names once; a text that names one may write, and then the server is asked at the commit whether it did. The
 * question and its cases are in {@code shims/postgresql/statements.json}.
 */
final class UnsureNames {
  /** One statement that declares a held cursor: what its query writes it writes in the commit, behind our question. */
  private static final Pattern HELD = Pattern.compile("(?is)\\s*declare\\b[^;]*\\bwith\\s+hold\\b[^;]*;?\\s*");

  /** Rows of what it is and its name: a function, a word (a view, a table with a policy, a column that is a call). */
  static final String QUESTION = """
      WITH RECURSIVE own AS (
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
         AND pg_get_viewdef(c.oid) ~* '\\m(nextval|setval|lo_\\w+|lowrite|pg_logical_emit_message)\\s*\\(')
       UNION
       SELECT r.ev_class FROM relations AS v JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
        AND d.refobjid = v.oid AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite AS r ON r.oid = d.objid)
      SELECT 'function', proname FROM own
      UNION SELECT 'word', proname FROM own JOIN pg_type AS t ON t.oid = own.proargtypes[0]
       WHERE own.pronargs = 1 AND t.typtype = 'c'
      UNION SELECT 'word', c.relname FROM relations AS v JOIN pg_class AS c ON c.oid = v.oid
      UNION SELECT 'operator', oprname FROM operators""";

  private static final String IN_WORDS = "[\\w$\\x{80}-\\x{10ffff}]";
  private static final UnsureNames OF_ALL = new UnsureNames(Pattern.compile(""));

  private static final long STANDS_NANOS = 10_000_000_000L;

  private final Pattern pattern; // null where nothing is unsure
  private final long askedAt = System.nanoTime();

  private UnsureNames(Pattern pattern) {
    this.pattern = pattern;
  }

  /** Returns whether the question is to be asked again. */
  boolean isOld() {
    return System.nanoTime() - askedAt > STANDS_NANOS;
  }

  /** Return what an answer to the question says; where there is none, any text may write. */
  static UnsureNames of(Answers answers) {
    return answers.error() != null || answers.rows(0) == null ? OF_ALL : of(answers.rows(0));
  }

  /** Return what these rows say. */
  static UnsureNames of(List<String[]> rows) {
    List<String> parts = new ArrayList<>();
    for (String[] row : rows) {
      String name = Pattern.quote(row[1]);
      if (row[0].equals("operator")) {
        parts.add(name);
      } else if (row[0].equals("word") || Statements.isHarmless(row[1])) { // another call may write anyway
        parts.add("(?<!" + IN_WORDS + ")" + name + "(?!" + IN_WORDS + ")");
      }
    }
    int letters = Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE;
    return new UnsureNames(parts.isEmpty() ? null : Pattern.compile(String.join("|", parts), letters));
  }

  /** Return what a statement may do, by its text (null: nobody knows it) and by what its database has. */
  Kind classify(String text) {
    Kind kind = text == null ? Kind.MAYBE : Statements.classify(text);
    boolean isUnsure = kind == Kind.READ && pattern != null && pattern.matcher(text).find();
    Kind found = isUnsure ? Kind.MAYBE : kind;
    return found == Kind.MAYBE && text != null && HELD.matcher(text).matches() ? Kind.WRITE : found;
  }
}
