package dev.antipode.postgresql;

/**
 * A statement's text without what is no word of it: comments, and the insides of literals, in which the sign of a comment
 * is none. Names in quotes stay as they are.
 */
final class StatementText {
  private final String text;
  private final boolean escapes;
  private final StringBuilder kept;
  private int at;

  private StatementText(String text, boolean escapes) {
    this.text = text;
    this.escapes = escapes;
    this.kept = new StringBuilder(text.length());
  }

  /**
   * What is left of a text: a space for a comment, {@code ''} for a literal; null where one of them does not end.
   *
   * @param escapes whether a backslash escapes in every literal ({@code standard_conforming_strings = off})
   */
  static String without(String text, boolean escapes) {
    StatementText scanned = new StatementText(text, escapes);
    return scanned.scan() ? scanned.kept.toString() : null;
  }

  private boolean scan() {
    while (at < text.length()) {
      char c = text.charAt(at);
      boolean ended = true;
      if (text.startsWith("--", at)) {
        while (at < text.length() && text.charAt(at) != '\n' && text.charAt(at) != '\r') {
          at++;
        }
        kept.append(' ');
      } else if (text.startsWith("/*", at)) {
        ended = comment();
      } else if (c == '\'') {
        ended = literal(escapes, false);
      } else if (c == '"') {
        ended = name();
      } else if (c == '$') {
        ended = dollars();
      } else if (isFirst(c)) {
        ended = word();
      } else {
        kept.append(c);
        at++;
      }
      if (!ended) {
        return false;
      }
    }
    return true;
  }

  /** A word may have dollar signs in it, and a number ends before one. */
  private boolean word() {
    int from = at;
    while (at < text.length() && isWord(text.charAt(at))) {
      at++;
    }
    boolean isMark = at - from == 1 && (text.charAt(from) | ' ') == 'e' && text.startsWith("'", at);
    if (isMark) {
      return literal(true, true);
    }
    kept.append(text, from, at);
    return true;
  }

  /** Comments may be nested. */
  private boolean comment() {
    int depth = 0;
    do {
      if (text.startsWith("/*", at)) {
        depth++;
        at += 2;
      } else if (text.startsWith("*/", at)) {
        depth--;
        at += 2;
      } else {
        at++;
      }
    } while (depth > 0 && at < text.length());
    kept.append(' ');
    return depth == 0;
  }

  /**
   * A literal whose first quote is here.
   *
   * @param marked whether an E stands before it: then its escapes go on in the next line
   */
  private boolean literal(boolean escaping, boolean marked) {
    at++;
    while (at < text.length()) {
      char c = text.charAt(at++);
      if (c == '\\' && escaping) {
        at++;
      } else if (c == '\'') {
        int next = at < text.length() && text.charAt(at) == '\'' ? at : marked ? onNextLine() : -1;
        if (next < 0) {
          kept.append("''");
          return true;
        }
        at = next + 1;
      }
    }
    return false;
  }

  /** Where a literal with escapes that ends here goes on, behind the end of the line; less than 0 where it does not. */
  private int onNextLine() {
    boolean isNext = false;
    int place = at;
    while (place < text.length()) {
      char c = text.charAt(place);
      if (text.startsWith("--", place)) {
        while (place < text.length() && text.charAt(place) != '\n' && text.charAt(place) != '\r') {
          place++;
        }
      } else if (c == ' ' || c >= '\t' && c <= '\r') {
        isNext |= c == '\n' || c == '\r';
        place++;
      } else {
        return isNext && c == '\'' ? place : -1;
      }
    }
    return -1;
  }

  private boolean name() {
    int from = at++;
    while (at < text.length()) {
      if (text.charAt(at++) == '"') {
        if (at < text.length() && text.charAt(at) == '"') {
          at++;
        } else {
          kept.append(text, from, at);
          return true;
        }
      }
    }
    return false;
  }

  private boolean dollars() {
    int end = at + 1;
    while (end < text.length() && isWord(text.charAt(end)) && text.charAt(end) != '$') {
      end++;
    }
    boolean isTag = end < text.length() && text.charAt(end) == '$' && !Character.isDigit(text.charAt(at + 1));
    if (!isTag) { // a parameter's number, or a stray sign
      kept.append('$');
      at++;
      return true;
    }
    String tag = text.substring(at, end + 1);
    int close = text.indexOf(tag, end + 1);
    if (close < 0) {
      return false;
    }
    kept.append("''");
    at = close + tag.length();
    return true;
  }

  private static boolean isFirst(char c) {
    return c == '_' || c >= 0x80 || Character.isLetter(c);
  }

  private static boolean isWord(char c) {
    return isFirst(c) || c == '$' || Character.isDigit(c);
  }
}
