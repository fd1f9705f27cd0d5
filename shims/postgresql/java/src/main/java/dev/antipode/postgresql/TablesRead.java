package dev.antipode.postgresql;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Of which tables a statement reads, by its text (HIST-36, {@code spec/vectors/history-tables.json}). */
final class TablesRead {
  /** Of what reads, and nobody can tell from what. */
  static final List<String> UNNAMED = List.of("");

  /** What gives no data of the tables that it names, or what the query of its cursor has said. */
  private static final Set<String> NO_READ = Set.of(
      "fetch", "move", "close", "create", "alter", "drop", "truncate", "lock", "grant", "revoke", "comment", "vacuum",
      "analyze", "reindex", "cluster", "refresh", "insert", "update", "delete", "merge", "prepare", "import", "security",
      "reassign");
  private static final Set<String> MAY_READ =
      Set.of("select", "values", "call", "execute", "do", "copy", "from", "with", "table", "explain");
  private static final Set<String> QUERIES = Set.of("select", "values", "with", "table");
  private static final Set<String> ENDS_LIST = Set.of(
      "select", "values", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union",
      "intersect", "except", "returning", "set");
  private static final Set<String> OWN_FROM = Set.of("extract", "substring", "trim", "overlay", "position");
  private static final Set<String> MADE = Set.of("into", "temp", "temporary", "unlogged");
  private static final Set<String> BEFORE_NAMES = Set.of(".", "as");
  private static final int MOST_TABLES = 32;
  private static final Memo<List<String>> KNOWN = new Memo<>(TablesRead::judge);

  private final List<String> words;
  private final Deque<Level> levels = new ArrayDeque<>();
  private final Set<String> tables;
  private boolean isUnclear; // whether something in a table's place has a name that nobody knows

  private TablesRead(List<String> words, Set<String> tables) {
    this.words = words;
    this.tables = tables;
  }

  /**
   * The tables that a statement reads, by their names in it; an empty name where it has none, or for all beyond 32; nothing
   * where it reads no data. What stands in literals is none of it. Of what writes, what it returns is no read.
   */
  static List<String> of(String text) {
    return KNOWN.of(text);
  }

  private static List<String> judge(String text) {
    Kind kind = Statements.classify(text);
    if (kind != Kind.READ && kind != Kind.MAYBE) {
      return List.of();
    }
    List<String> all = wordsOf(text);
    if (all == null) {
      return UNNAMED;
    }
    Set<String> tables = new LinkedHashSet<>();
    boolean isUnclear = false;
    for (List<String> statement : statements(all)) {
      if (mayRead(statement)) {
        TablesRead read = new TablesRead(statement, tables);
        isUnclear |= read.walk() || kind == Kind.MAYBE;
      }
    }
    if (tables.isEmpty()) {
      return isUnclear ? UNNAMED : List.of();
    }
    List<String> told = new ArrayList<>(tables);
    if (told.size() > MOST_TABLES) {
      told.subList(MOST_TABLES, told.size()).clear();
      told.add("");
    }
    return List.copyOf(told);
  }

  /** Null where it breaks off, or where it depends on a setting what is a literal. */
  private static List<String> wordsOf(String text) {
    String bare = StatementText.without(text, false);
    List<String> words = bare == null ? null : StatementWords.of(bare);
    if (words == null || text.indexOf('\\') < 0) {
      return words;
    }
    String escaped = StatementText.without(text, true);
    return escaped != null && StatementWords.of(escaped).equals(words) ? words : null;
  }

  private static List<List<String>> statements(List<String> words) {
    List<List<String>> found = new ArrayList<>();
    int depth = 0;
    int from = 0;
    for (int at = 0; at < words.size(); at++) {
      String word = words.get(at);
      depth = word.equals("(") ? depth + 1 : word.equals(")") ? Math.max(0, depth - 1) : depth;
      if (depth == 0 && word.equals(";")) {
        found.add(words.subList(from, at));
        from = at + 1;
      }
    }
    found.add(words.subList(from, words.size()));
    return found;
  }

  private static boolean mayRead(List<String> statement) {
    String first = statement.stream().filter(word -> !word.equals("(")).findFirst().orElse("");
    if (NO_READ.contains(first) || Collections.disjoint(statement, MAY_READ)) {
      return false;
    }
    return !first.equals("copy") || !copiesIn(statement);
  }

  /** Whether a COPY has its FROM outside of all parentheses. */
  private static boolean copiesIn(List<String> statement) {
    int depth = 0;
    for (String word : statement) {
      depth += word.equals("(") ? 1 : word.equals(")") ? -1 : 0;
      if (depth == 0 && word.equals("from")) {
        return true;
      }
    }
    return false;
  }

  // One statement

  /** What is known between two parentheses. */
  private static final class Level {
    /** What WITH has named here: no tables. */
    private Set<String> named;

    /** Whether a table comes next. */
    private boolean expects;

    /** In {@code extract(… from …)}, which is no clause. */
    private final boolean hasOwnFrom;

    /** What it is called outside, in WITH; else null. */
    private final String defines;

    private boolean lists;
    private boolean inWith;
    private boolean isRecursive;

    private Level(Set<String> named, boolean expects, boolean hasOwnFrom, String defines) {
      this.named = named;
      this.expects = expects;
      this.hasOwnFrom = hasOwnFrom;
      this.defines = defines;
    }

    private void names(String name) {
      named = new HashSet<>(named);
      named.add(name);
    }
  }

  /** Whether something in it is unclear. */
  private boolean walk() {
    levels.push(new Level(Set.of(), false, false, null));
    for (int at = 0; at < words.size(); ) {
      at = next(at, words.get(at));
    }
    return isUnclear || levels.peek().expects;
  }

  private String word(int at) {
    return at >= 0 && at < words.size() ? words.get(at) : "";
  }

  /** Where to go on. */
  private int next(int at, String word) {
    Level level = levels.peek();
    if (word.equals("(")) {
      levels.push(new Level(level.named, level.expects, OWN_FROM.contains(word(at - 1)), null));
      level.expects = false;
    } else if (word.equals(")")) {
      close();
    } else if (level.expects && !QUERIES.contains(word)) {
      return table(at, word, level);
    } else if (word.equals(",")) {
      level.expects |= level.lists;
      return level.inWith && !level.lists ? define(at + 1, level) : at + 1;
    } else if (!BEFORE_NAMES.contains(word(at - 1))) { // behind these, any word is a name
      return keyword(at, word, level);
    }
    return at + 1;
  }

  private void close() {
    if (levels.size() > 1) {
      Level closed = levels.pop();
      isUnclear |= closed.expects;
      if (closed.defines != null) {
        levels.peek().names(closed.defines);
      }
    }
  }

  private int table(int from, String word, Level level) {
    boolean isJoin = word.equals("{") || word.equals("oj") && word(from - 1).equals("{"); // JDBC's own form of one
    if (isJoin || word.equals("only") || word.equals("lateral")) {
      return from + 1;
    }
    level.expects = false;
    if (word.equals("rows") && word(from + 1).equals("from")) { // functions, side by side
      return from + 2;
    }
    if (!StatementWords.isName(word)) {
      isUnclear = true;
      return from + 1;
    }
    StringBuilder name = new StringBuilder(StatementWords.called(word));
    int at = from + 1;
    while (word(at).equals(".") && StatementWords.isName(word(at + 1))) {
      name.append('.').append(StatementWords.called(word(at + 1)));
      at += 2;
    }
    boolean isCalled = word(at).equals("(") && !word(from - 1).equals("copy"); // which may have columns there
    boolean isOfWith = at == from + 1 && level.named.contains(name.toString());
    if (!isCalled && !isOfWith) {
      tables.add(name.toString());
    }
    return at;
  }

  private int keyword(int at, String word, Level level) {
    if (ENDS_LIST.contains(word)) {
      level.lists = false;
    }
    if (QUERIES.contains(word)) {
      level.expects = level.inWith = false;
    }
    switch (word) {
      case "from" -> {
        boolean isClause = !level.hasOwnFrom && !isNoClause(at);
        level.expects |= isClause;
        level.lists |= isClause;
      }
      case "join" -> level.expects = true;
      case "copy" -> level.expects |= at == 0;
      case "table" -> level.expects = !MADE.contains(word(at - 1));
      case "with" -> {
        level.isRecursive = word(at + 1).equals("recursive");
        return define(level.isRecursive ? at + 2 : at + 1, level);
      }
      default -> {
        // says nothing of tables
      }
    }
    return at + 1;
  }

  private boolean isNoClause(int at) {
    String before = word(at - 1);
    String first = word(at - 2);
    return before.equals("delete") || before.equals("distinct") && (first.equals("is") || first.equals("not"));
  }

  /** What WITH names, if it names anything here: its query comes next. */
  private int define(int at, Level level) {
    int end = at + 1;
    if (word(end).equals("(")) {
      end++;
      while (word(end).equals(",") || StatementWords.isName(word(end))) {
        end++;
      }
      end++; // its closing parenthesis
    }
    if (!StatementWords.isName(word(at)) || !word(end).equals("as")) {
      return at;
    }
    end++;
    end += word(end).equals("not") ? 1 : 0;
    end += word(end).equals("materialized") ? 1 : 0;
    if (!word(end).equals("(")) {
      return at;
    }
    String name = StatementWords.called(word(at));
    level.inWith = true;
    if (level.isRecursive) {
      level.names(name);
    }
    levels.push(new Level(level.named, false, false, name));
    return end + 1;
  }
}
