package dev.antipode.testing;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The public methods of a client's classes against a shim's tables (SHIM-51): a release that brings a method is found before
 * it goes round the shim.
 */
public final class Inventory {
  private final Set<String> methods;
  private final Set<String> named = new TreeSet<>();

  private Inventory(Stream<String> methods) {
    this.methods = methods.collect(Collectors.toCollection(TreeSet::new));
  }

  /** The methods of a class, those that it inherits included. */
  public static Inventory of(Class<?> type) {
    return new Inventory(Arrays.stream(type.getMethods())
        .filter(each -> each.getDeclaringClass() != Object.class).map(Method::getName));
  }

  /** The same without what these have, which tables of their own name. */
  public Inventory without(Class<?>... others) {
    Set<String> theirs = Arrays.stream(others).flatMap(each -> Arrays.stream(each.getMethods()))
        .map(Method::getName).collect(Collectors.toSet());
    return new Inventory(methods.stream().filter(each -> !theirs.contains(each)));
  }

  /** Names methods, apart by spaces; {@code why} says what they do, or why nothing has to be done about them. */
  public Inventory named(String why, String names) {
    named.addAll(List.of(names.split(" ")));
    return this;
  }

  /** Return what no table names, and with a minus what a table names and is not there. */
  public List<String> differences() {
    return Stream.concat(
        methods.stream().filter(each -> !named.contains(each)),
        named.stream().filter(each -> !methods.contains(each)).map(each -> "-" + each)).toList();
  }
}
