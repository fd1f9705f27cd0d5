package dev.antipode.postgresql;

import dev.antipode.Lineage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The moments that data on one connection are of, where these are past when the data are read: the snapshot that a
 * transaction keeps, cursors, results that are fetched in parts, large objects. Of each it is kept which writes were proved
 * when it was taken: data of it cannot show others, however long somebody waits (SHIM-48).
 */
final class Moments {
  private static final Memo<List<String>> FETCHED = new Memo<>(text -> names(text, true));
  private static final Memo<List<String>> DECLARED = new Memo<>(text -> names(text, false));
  private static final Pattern IMPORTS = Pattern.compile("(?is)\\btransaction\\b.*\\bsnapshot\\b");

  private Lineage proved = Lineage.EMPTY; // by the wait before the statement that is sent next
  private Lineage now = Lineage.EMPTY; // of the statement that was sent last
  private Set<String> openNext; // the cursors that are open before the statement that is sent next; null: nobody knows
  private Set<String> openBefore; // those that were before the last one
  private Lineage snapshot; // null where the open transaction has none yet
  private final Map<String, Lineage> cursors = new HashMap<>(); // those that were closed may stay: they are older
  private final List<Lineage> objects = new ArrayList<>(0);

  /** A wait has proved this for the statement that is sent next; {@code open} names the cursors before it, null: nobody knows. */
  void proved(Lineage writes, Set<String> open) {
    proved = writes;
    openNext = open;
  }

  /** A statement is sent. */
  void begins() {
    now = proved;
    proved = Lineage.EMPTY;
    openBefore = openNext;
    openNext = null;
    if (snapshot == null) {
      snapshot = now;
    }
  }

  /** A transaction is open, whoever began it: where nobody saw what took its snapshot, it may have one of any moment. */
  void isOpen() {
    if (snapshot == null) {
      snapshot = Lineage.EMPTY;
    }
  }

  /** No transaction is open: a cursor may be, but no snapshot of one. */
  void transactionOver() {
    snapshot = null;
    objects.clear();
  }

  /** Return that of the statement that was sent last. */
  Lineage now() {
    return now;
  }

  /** Return that of the open transaction, where it keeps its snapshot; null before its first statement. */
  Lineage snapshot() {
    return snapshot;
  }

  // Cursors and snapshots by text

  /** A text was done: the cursors that it declared, and the snapshot that it imported, which may be of any moment. */
  void done(String text) {
    if (text == null) {
      return;
    }
    DECLARED.of(text).forEach(name -> cursors.put(name, now));
    if (imports(text)) {
      imported();
    }
  }

  /** Return whether a text imports a snapshot. */
  static boolean imports(String text) {
    return text != null && IMPORTS.matcher(text).find();
  }

  /** The open transaction has the snapshot of another one. */
  void imported() {
    snapshot = Lineage.EMPTY;
  }

  /**
   * Return those of the cursors that a text fetches from, which it did not declare itself; of an unknown one it is the empty
   * one. None where it does not fetch.
   */
  List<Lineage> fetched(String text) {
    return text == null
        ? List.of()
        : FETCHED.of(text).stream().map(name -> cursors.getOrDefault(name, Lineage.EMPTY)).toList();
  }

  /** Return what is known of the cursors that the last statement may have opened, or may name. */
  CursorMoments given() {
    return new CursorMoments(now, openBefore, cursors);
  }

  /**
   * The cursors that one statement gave: what was not open before, it opened itself.
   *
   * @param own its moment
   * @param before the names of those that were open before it; null: of any
   * @param known the moments of those that a text declared, as they are now
   */
  record CursorMoments(Lineage own, Set<String> before, Map<String, Lineage> known) {
    static final CursorMoments NONE = new CursorMoments(Lineage.EMPTY, null, Map.of());

    /** Return that of a cursor. */
    Lineage of(String name) {
      return before == null || before.contains(name) ? known.getOrDefault(name, Lineage.EMPTY) : own;
    }

    /** Return those of all that it may have fetched from, and that show less than was proved for it. */
    List<Lineage> older() {
      Stream<Lineage> all = before == null ? Stream.of(Lineage.EMPTY) : before.stream().map(this::of);
      return all.filter(each -> !own.ids().stream().allMatch(each::covers)).toList();
    }
  }

  /** Return whether a text does nothing but fetch. */
  static boolean onlyFetches(String text) {
    return text != null && Statements.classify(text) == Kind.READ && !FETCHED.of(text).isEmpty();
  }

  private static List<String> names(String text, boolean fetched) {
    Set<String> found = new LinkedHashSet<>();
    for (boolean escapes : new boolean[] {false, true}) {
      String bare = StatementText.without(text, escapes);
      if (bare != null) {
        collect(StatementWords.of(bare), fetched, found);
      } else if (fetched && text.toLowerCase(java.util.Locale.ROOT).contains("fetch")) {
        found.add(""); // nobody knows
      }
    }
    return List.copyOf(found);
  }

  private static void collect(List<String> words, boolean fetched, Set<String> found) {
    Set<String> declared = new LinkedHashSet<>();
    for (int from = 0; from < words.size(); ) {
      int end = words.subList(from, words.size()).indexOf(";");
      List<String> one = words.subList(from, end < 0 ? words.size() : from + end);
      if (one.size() > 1 && one.get(0).equals("declare")) {
        if (!one.get(1).equals(StatementWords.CODED)) { // it may be any
          declared.add(StatementWords.called(one.get(1)));
        }
      } else if (fetched && one.size() > 1 && one.get(0).equals("fetch")) {
        String name = StatementWords.called(one.get(one.size() - 1));
        if (!declared.contains(name)) {
          found.add(name);
        }
      }
      from = end < 0 ? words.size() : from + end + 1;
    }
    if (!fetched) {
      found.addAll(declared);
    }
  }

  // Large objects

  /** One was opened. */
  void objectOpened() {
    objects.add(now);
  }

  /** Return those of the large objects that are open. */
  List<Lineage> objects() {
    return List.copyOf(objects);
  }
}
