package dev.antipode.internal.base;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * How the value of a setting is read from a variable, and what it may be.
 *
 * @param read gives a variable's text its type
 * @param check gives the value back; both throw IllegalArgumentException with a few words on what is wanted
 */
public record Kind(Function<String, Object> read, UnaryOperator<Object> check) {
  /** What the names of all variables begin with. */
  public static final String PREFIX = "ANTIPODE_";

  private static final Pattern NUMBER = Pattern.compile("[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?");
  private static final Pattern WHOLE = Pattern.compile("[+-]?[0-9]{1,18}");
  private static final Set<String> TRUE = Set.of("1", "true", "yes", "on");
  private static final Set<String> FALSE = Set.of("0", "false", "no", "off");
  private static final BigDecimal MOST_NANOS = BigDecimal.valueOf(Long.MAX_VALUE);

  /** What a variable's text means; checked. */
  public Object valueOf(String text) {
    return check.apply(read.apply(text));
  }

  /** Any text. */
  public static Kind text() {
    return new Kind(text -> text, UnaryOperator.identity());
  }

  /** One of these, by its word in any case. */
  public static Kind oneOf(Object... words) {
    List<Object> members = List.of(words);
    String wanted = "want one of " + members.stream().map(Object::toString).collect(Collectors.joining(", "));
    return new Kind(
        text -> members.stream()
            .filter(member -> member.toString().equals(text.toLowerCase(Locale.ROOT)))
            .findFirst()
            .orElseThrow(() -> new IllegalArgumentException(wanted)),
        value -> {
          if (!members.contains(value)) {
            throw new IllegalArgumentException(wanted);
          }
          return value;
        });
  }

  /** True or false. */
  public static Kind flag() {
    return new Kind(
        text -> {
          String word = text.toLowerCase(Locale.ROOT);
          if (!TRUE.contains(word) && !FALSE.contains(word)) {
            throw new IllegalArgumentException("want true or false");
          }
          return TRUE.contains(word);
        },
        UnaryOperator.identity());
  }

  /** A duration, in variables a number of units of so many nanoseconds. */
  public static Kind duration(Duration unit, Duration least) {
    return duration(unit, least, Duration.ofSeconds(Long.MAX_VALUE));
  }

  /** The same, of which there can be too much. */
  public static Kind duration(Duration unit, Duration least, Duration most) {
    return new Kind(
        text -> {
          BigDecimal nanos = number(text).multiply(BigDecimal.valueOf(unit.toNanos()));
          if (nanos.signum() < 0) {
            throw atLeast(seconds(least));
          }
          return Duration.ofNanos(nanos.min(MOST_NANOS).longValue());
        },
        value -> {
          if (((Duration) value).compareTo(least) < 0) {
            throw atLeast(seconds(least));
          }
          if (((Duration) value).compareTo(most) > 0) {
            throw new IllegalArgumentException("want " + most.toSeconds() + " s at most");
          }
          return value;
        });
  }

  private static String seconds(Duration duration) {
    return BigDecimal.valueOf(duration.toNanos(), 9).stripTrailingZeros().toPlainString() + " s";
  }

  private static IllegalArgumentException atLeast(Object least) {
    return new IllegalArgumentException("want at least " + least + ", and not infinite");
  }

  /** A whole number within these bounds. */
  public static Kind count(int least, int most) {
    return new Kind(
        text -> {
          if (!WHOLE.matcher(text).matches()) {
            throw new IllegalArgumentException("want a whole number");
          }
          return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, Long.parseLong(text)));
        },
        value -> {
          int count = (Integer) value;
          if (count < least || count > most) {
            throw most == Integer.MAX_VALUE
                ? atLeast(least)
                : new IllegalArgumentException("want a number from " + least + " to " + most);
          }
          return value;
        });
  }

  /** A number from 0 to 1. */
  public static Kind share() {
    return new Kind(
        text -> number(text).doubleValue(),
        value -> {
          double share = (Double) value;
          if (!(share >= 0 && share <= 1)) {
            throw new IllegalArgumentException("want a number from 0 to 1");
          }
          return value;
        });
  }

  /** A list of names, in variables between commas, white space or both (CONF-7). */
  public static Kind names() {
    return new Kind(
        text -> Arrays.stream(text.split("[,\\s]+")).filter(name -> !name.isEmpty()).toList(),
        value -> {
          List<?> names = (List<?>) value;
          if (names.stream().anyMatch(name -> !(name instanceof String text) || text.isEmpty())) {
            throw new IllegalArgumentException("want a list of names");
          }
          return List.copyOf(names);
        });
  }

  private static BigDecimal number(String text) {
    if (!NUMBER.matcher(text).matches()) {
      throw new IllegalArgumentException("want a number");
    }
    return new BigDecimal(text);
  }
}
