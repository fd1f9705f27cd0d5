package dev.antipode.propagation;

import dev.antipode.Lineage;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Which responses a shared cache may keep, for others than their caller (PROP-34, PROP-38, PROP-39). */
public final class SharedCaches {
  /** The word that stands where the method is not known. */
  public static final String ANY_METHOD = "";

  /** The number that stands where the status is not known. */
  public static final int ANY_STATUS = 0;

  /** The word that stands in the place of a lineage that is withheld (PROP-16). */
  public static final String MARK = Lineage.EMPTY.markedIncomplete().serialize();

  private static final String CONTROL = "cache-control";
  private static final String EXPIRES = "expires";
  private static final String ACCELERATED = "x-accel-expires";
  private static final String PLACE = "content-location";
  private static final String MODIFIED = "last-modified";
  private static final Set<String> OTHERS = Set.of(CONTROL, EXPIRES, MODIFIED, PLACE, ACCELERATED);

  /** The same as the first for some caches alone, and above it there; those of vendors end like the first of these. */
  private static final Set<String> TARGETED = Set.of("cdn-cache-control", "surrogate-control");

  private static final Set<String> NEVER_KEPT = Set.of("PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT");

  /** Methods whose answers are kept only where they say of which resource they are. */
  private static final Set<String> KEPT_BY_PLACE = Set.of("POST", "PATCH");

  /** Statuses of which a cache may guess how long they are fresh. */
  private static final Set<Integer> GUESSED =
      Set.of(ANY_STATUS, 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501);

  /** The cache has the answer already, by a guess that this one need not give the reason of (RFC 9110, 15.4.5). */
  static final int NOT_MODIFIED = 304;

  private static final String ROUND_NUMBERS = " \t\"";
  private static final Set<String> STALE = Set.of("stale-while-revalidate", "stale-if-error");
  private static final Pattern DATE =
      Pattern.compile("[A-Za-z]{3}, ([0-9]{2}) ([A-Za-z]{3}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT");
  private static final List<String> MONTHS =
      List.of("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec");

  private SharedCaches() {}

  /** A word of a line, and what follows its equals sign; null: it stands by itself. */
  private record Directive(String word, String value) {}

  /**
   * Return whether a shared cache may keep this response; unsure, it may. Where method or status are not known, the headers
   * alone say it.
   *
   * @param method the request's; null or {@link #ANY_METHOD}: it is not known
   * @param status the response's, or {@link #ANY_STATUS}
   */
  public static boolean mayKeep(Iterable<Header> headers, String method, int status) {
    String known = method == null ? ANY_METHOD : method; // sets of the JDK refuse to look for null
    if (NEVER_KEPT.contains(known)) {
      return false;
    }
    Map<String, List<String>> lines = new HashMap<>();
    for (Header header : headers) {
      String name = header.name().toLowerCase(Locale.ROOT);
      if (header.value() != null && (OTHERS.contains(name) || isTargeted(name))) {
        lines.computeIfAbsent(name, key -> new ArrayList<>()).add(header.value());
      }
    }
    boolean isByPlace = KEPT_BY_PLACE.contains(known);
    if (lines.isEmpty() && status != NOT_MODIFIED || isByPlace && !lines.containsKey(PLACE)) {
      return false;
    }
    if (lines.getOrDefault(ACCELERATED, List.of()).stream().anyMatch(SharedCaches::isNotZero)) {
      return true;
    }
    boolean isGuessed = status == NOT_MODIFIED || lines.containsKey(MODIFIED) && GUESSED.contains(status);
    boolean otherwise = lines.containsKey(EXPIRES)
        ? !lines.get(EXPIRES).stream().allMatch(SharedCaches::isPast)
        : isGuessed && !isByPlace;
    return isShared(lines.getOrDefault(CONTROL, List.of()), otherwise)
        || lines.keySet().stream().anyMatch(name -> isTargeted(name) && isShared(lines.get(name), false));
  }

  private static boolean isTargeted(String name) {
    return TARGETED.contains(name) || name.endsWith("-cdn-cache-control");
  }

  /** Returns whether these directives let a cache keep it; {@code otherwise}: where they say nothing of its age. */
  private static boolean isShared(List<String> lines, boolean otherwise) {
    String line = String.join(",", lines).toLowerCase(Locale.ROOT);
    List<Directive> exact = directives(withoutQuotedCommas(line));
    List<Directive> loose = Stream.concat(exact.stream(), directives(line).stream()).toList(); // some split at each comma
    if (isNamed("public", loose)) {
      return true;
    }
    boolean isUnderstood = isNamed("must-understand", loose);
    if (Stream.of("private", "no-cache", "no-store")
        .anyMatch(word -> standsAlone(word, exact) && !(isUnderstood && word.equals("no-store")))) {
      return false;
    }
    String age = isNamed("s-maxage", exact) ? "s-maxage" : "max-age";
    boolean isFresh = loose.stream().anyMatch(each -> isNotZero(each.value())
        && (each.word().equals(age) || each.word().equals("s-maxage") || STALE.contains(each.word())));
    return isFresh || otherwise && !isNamed(age, exact);
  }

  private static String withoutQuotedCommas(String line) {
    StringBuilder plain = new StringBuilder(line);
    boolean isQuoted = false;
    for (int place = 0; place < plain.length(); place++) {
      char c = plain.charAt(place);
      if (c == '"') {
        isQuoted = !isQuoted;
      } else if (isQuoted && c == '\\') {
        place++;
        if (place < plain.length() && plain.charAt(place) == ',') {
          plain.setCharAt(place, ' ');
        }
      } else if (isQuoted && c == ',') {
        plain.setCharAt(place, ' ');
      }
    }
    return plain.toString();
  }

  private static List<Directive> directives(String line) {
    List<Directive> found = new ArrayList<>();
    for (String directive : line.split(",", -1)) {
      int equals = directive.indexOf('=');
      found.add(equals < 0
          ? new Directive(directive.strip(), null)
          : new Directive(directive.substring(0, equals).strip(), directive.substring(equals + 1)));
    }
    return found;
  }

  private static boolean isNamed(String word, List<Directive> directives) {
    return directives.stream().anyMatch(each -> each.word().equals(word));
  }

  /** Returns whether a word is there, each time by itself: with the name of a field it speaks of that field alone. */
  private static boolean standsAlone(String word, List<Directive> directives) {
    List<Directive> all = directives.stream().filter(each -> each.word().equals(word)).toList();
    return !all.isEmpty() && all.stream().allMatch(each -> each.value() == null);
  }

  private static boolean isNotZero(String value) {
    int from = 0;
    int to = value == null ? 0 : value.length();
    while (from < to && ROUND_NUMBERS.indexOf(value.charAt(from)) >= 0) {
      from++;
    }
    while (from < to && ROUND_NUMBERS.indexOf(value.charAt(to - 1)) >= 0) {
      to--;
    }
    return from == to || value.substring(from, to).chars().anyMatch(c -> c != '0');
  }

  /** Whether every cache takes it for past: no date at all is (RFC 9111, 5.3), an old form of one may not be. */
  private static boolean isPast(String expires) {
    String text = expires.strip();
    if (text.matches("-?[0-9]*")) {
      return true;
    }
    Matcher date = DATE.matcher(text);
    int month = date.matches() ? MONTHS.indexOf(date.group(2)) + 1 : 0;
    if (month == 0) {
      return false;
    }
    LocalDateTime now = LocalDateTime.now(ZoneOffset.UTC);
    int[] parts = {number(date, 3), month, number(date, 1), number(date, 4), number(date, 5), number(date, 6)};
    int[] present =
        {now.getYear(), now.getMonthValue(), now.getDayOfMonth(), now.getHour(), now.getMinute(), now.getSecond()};
    return Arrays.compare(parts, present) <= 0;
  }

  private static int number(Matcher date, int group) {
    return Integer.parseInt(date.group(group));
  }
}
