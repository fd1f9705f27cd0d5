package dev.antipode.postgresql;

import java.util.ArrayList;
import java.util.List;

/** The words of a statement whose comments and literals are taken out ({@link StatementText}). */
final class StatementWords {
  /** In place of a literal. */
  static final String LITERAL = "'";

  /** In place of a number. */
  static final String NUMBER = "0";

  /** In place of a name of which nobody knows here what it is called: one with octets of its own in it. */
  static final String CODED = "&";

  private static final String QUOTE = "\"";

  private final String bare;
  private final List<String> words = new ArrayList<>();
  private int at;

  private StatementWords(String bare) {
    this.bare = bare;
  }

  /** Each of them is a word or sign as it is, in small letters, or a name in quotes, behind one quote. */
  static List<String> of(String bare) {
    StatementWords scanned = new StatementWords(bare);
    while (scanned.at < bare.length()) {
      scanned.next();
    }
    return scanned.words;
  }

  /** Whether it is a name, in quotes or without. */
  static boolean isName(String word) {
    return !word.isEmpty() && (word.startsWith(QUOTE) || isFirst(word.charAt(0)));
  }

  /** What a name is called. */
  static String called(String name) {
    return name.startsWith(QUOTE) ? name.substring(1) : name;
  }

  private void next() {
    char c = bare.charAt(at);
    if (c == ' ' || c >= '\t' && c <= '\r') {
      at++;
    } else if (c == '\'') { // of an empty literal
      words.add(LITERAL);
      at += 2;
    } else if (c == '"') {
      words.add(QUOTE + quoted());
    } else if (isFirst(c)) {
      word();
    } else if (isDigit(c)) {
      words.add(NUMBER);
      while (at < bare.length() && isDigit(bare.charAt(at))) {
        at++;
      }
    } else {
      words.add(String.valueOf(c));
      at++;
    }
  }

  private void word() {
    int from = at;
    while (at < bare.length() && isRest(bare.charAt(at))) {
      at++;
    }
    boolean isCoded = at - from == 1 && (bare.charAt(from) | ' ') == 'u' && bare.startsWith("&\"", at);
    if (isCoded) {
      at++;
      quoted();
    }
    words.add(isCoded ? CODED : folded(bare.substring(from, at)));
  }

  /** The name whose first quote is here. */
  private String quoted() {
    int from = ++at;
    while (bare.charAt(at) != '"' || bare.startsWith("\"\"", at)) {
      at += bare.charAt(at) == '"' ? 2 : 1;
    }
    return bare.substring(from, at++).replace("\"\"", QUOTE);
  }

  /** In small letters, those of ASCII. */
  private static String folded(String word) {
    StringBuilder small = new StringBuilder(word);
    for (int place = 0; place < small.length(); place++) {
      char c = small.charAt(place);
      if (c >= 'A' && c <= 'Z') {
        small.setCharAt(place, (char) (c + ' '));
      }
    }
    return small.toString();
  }

  private static boolean isFirst(char c) {
    return c == '_' || c >= 0x80 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z';
  }

  private static boolean isRest(char c) {
    return isFirst(c) || c == '$' || isDigit(c);
  }

  private static boolean isDigit(char c) {
    return c >= '0' && c <= '9';
  }
}
