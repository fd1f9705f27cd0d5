package dev.antipode;

import static dev.antipode.Canonical.canonical;
import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.internal.model.Names;
import dev.antipode.internal.model.WireForm;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** The laws of the algebra, and every operation against a slow model (LIN-6 to LIN-27, WIRE-19 to WIRE-24). */
class LineageLawsTest {
  private static final int TRIES = 300;

  /** What a lineage is made of, and whether it is read from a text that need not be canonical. */
  record Made(List<WriteId> entries, Set<String> incomplete, Set<String> extensions, long shuffle) {
    LineageModel model() {
      return LineageModel.of(new HashSet<>(entries), incomplete, extensions);
    }

    Lineage lineage() {
      if (shuffle % 2 == 0) {
        return Lineage.deserialize(text());
      }
      Lineage made = Lineage.of(entries);
      for (String store : incomplete) {
        made = store.isEmpty() ? made.markedIncomplete() : made.markedIncomplete(store);
      }
      for (String extension : extensions) {
        made = made.union(Lineage.deserialize("1~" + extension));
      }
      return made;
    }

    /** A text of these entries in any order, with what is repeated and absorbed (WIRE-23). */
    private String text() {
      Random random = new Random(shuffle);
      List<WriteId> again = new ArrayList<>(entries);
      entries.stream().filter(id -> random.nextBoolean()).forEach(again::add);
      Collections.shuffle(again, random);
      Map<String, String> sections = new LinkedHashMap<>();
      for (WriteId id : again) {
        String section = id.section();
        int dot = section.indexOf('.');
        sections.merge(section.substring(0, dot), section, (a, b) -> a + b.substring(dot));
      }
      List<String> tail = new ArrayList<>(extensions);
      incomplete.forEach(store -> tail.add(store.isEmpty() ? "_.i" : "_.i." + Names.spellName(store)));
      tail.addAll(extensions);
      Collections.shuffle(tail, random);
      StringBuilder text = new StringBuilder("1");
      sections.values().forEach(section -> text.append('~').append(section));
      tail.forEach(part -> text.append('~').append(part));
      return text.toString();
    }
  }

  // Few names, so that they meet, and names that are hard to spell or to sort.
  private static final Arbitrary<String> STORES =
      Arbitraries.of("s", "t", "a", "a-b", "a.b", "Z", "blog-posts", "é", "_", "~", "\udcff");
  private static final Arbitrary<String> KEYS = Arbitraries.of("", "", "k", "j", "k-1", "a.b~c", "\udcff\0", "_");
  private static final Arbitrary<String> EPOCHS =
      Arbitraries.of("e", "E", "e1", "8371ab90c2d4e6f1", "0-1", "e.f", "_", "");
  private static final Arbitrary<Long> COUNTERS =
      Arbitraries.of(0L, 1L, 2L, 3L, 9L, 10L, 11L, 99L, 100L, Long.MAX_VALUE, Long.MIN_VALUE, -1L);
  private static final Arbitrary<String> MARKS = Arbitraries.of("m", "n", "1", "5", "_", "3sL4kqtJlcpXroDT");
  private static final Arbitrary<String> EXTENSIONS =
      Arbitraries.of("_.x", "_.x.a", "_.branch.x7.30", "_.b..1", "_.i2");

  @Provide
  Arbitrary<WriteId> ids() {
    return Combinators.combine(STORES, KEYS, EPOCHS, COUNTERS, MARKS, Arbitraries.of(true, false))
        .as((store, key, epoch, counter, mark, opaque) -> {
          if (key.isEmpty()) {
            return WriteId.position(store, epoch.isEmpty() ? "e" : epoch, counter);
          }
          return new WriteId(store, key, opaque ? new Opaque(mark) : new Ordered(epoch, counter));
        });
  }

  @Provide
  Arbitrary<Made> made() {
    return Combinators.combine(
            ids().list().ofMaxSize(8),
            Arbitraries.frequencyOf(
                Tuple.of(2, Arbitraries.just(Set.<String>of())),
                Tuple.of(1, Arbitraries.oneOf(STORES, Arbitraries.just("")).set().ofMaxSize(2))),
            EXTENSIONS.set().ofMaxSize(2),
            Arbitraries.longs().between(0, 1000))
        .as(Made::new);
  }

  private static LineageModel seen(Lineage lineage) {
    assertThat(lineage.ids()).doesNotHaveDuplicates().hasSize(lineage.size());
    return LineageModel.of(lineage);
  }

  /** WIRE-23, WIRE-24, LIN-7 to LIN-9: spelling never changes the meaning, one meaning has one canonical text. */
  @Property(tries = TRIES)
  void readingAndWriting(@ForAll("made") Made made) {
    Lineage lineage = made.lineage();
    LineageModel expected = made.model();
    assertThat(seen(lineage)).isEqualTo(expected);
    assertThat(canonical(lineage)).isEqualTo(expected.text());
    assertThat(seen(Lineage.deserialize(lineage.serialize()))).isEqualTo(expected);
    assertThat(Lineage.deserialize(expected.text()).serialize()).isEqualTo(expected.text());
    assertThat(Lineage.of(lineage.ids())).isEqualTo(lineage);
    assertThat(lineage.hasContent()).isEqualTo(!expected.text().equals("1"));
    for (String store : lineage.stores()) {
      assertThat(lineage.ofStore(store)).isNotEmpty().allMatch(id -> id.store().equals(store));
    }
  }

  /** LIN-12, LIN-16, LIN-20: commutative, associative, idempotent, with the empty lineage as its unit. */
  @Property(tries = TRIES)
  void joining(@ForAll("made") Made one, @ForAll("made") Made two, @ForAll("made") Made three) {
    Lineage a = one.lineage();
    Lineage b = two.lineage();
    Lineage c = three.lineage();
    LineageModel ab = one.model().union(two.model());
    assertThat(seen(a.union(b))).isEqualTo(seen(b.union(a))).isEqualTo(ab);
    assertThat(seen(a.union(b).union(c))).isEqualTo(seen(a.union(b.union(c)))).isEqualTo(ab.union(three.model()));
    assertThat(seen(a.union(a))).isEqualTo(one.model());
    assertThat(seen(a.union(b).union(b))).isEqualTo(ab);
    assertThat(seen(a.union(Lineage.EMPTY))).isEqualTo(seen(Lineage.EMPTY.union(a))).isEqualTo(one.model());
    assertThat(canonical(a.union(b))).isEqualTo(ab.text());
  }

  /** LIN-13, LIN-14: a is covered by b exactly where their join is b, whatever the flag, extensions and spelling. */
  @Property(tries = TRIES)
  void ordering(@ForAll("made") Made one, @ForAll("made") Made two) {
    Lineage a = one.lineage();
    Lineage b = two.lineage();
    boolean below = one.model().beyond(two.model()).isEmpty();
    boolean above = two.model().beyond(one.model()).isEmpty();
    assertThat(a.isCoveredBy(b)).isEqualTo(below).isEqualTo(a.union(b).equals(b));
    assertThat(a.equals(b)).isEqualTo(below && above).isEqualTo(one.model().entries().equals(two.model().entries()));
    assertThat(a.isCoveredBy(a.union(b))).isTrue();
    Order expected = below ? above ? Order.EQUAL : Order.BEFORE : above ? Order.AFTER : Order.CONCURRENT;
    assertThat(a.compare(b)).isEqualTo(expected);
    assertThat(a).isEqualTo(Lineage.deserialize(one.model().text()))
        .hasSameHashCodeAs(Lineage.deserialize(one.model().text()));
  }

  /** LIN-7, LIN-8, WIRE-24: what is appended, in whatever order and grouping, joins. */
  @Property(tries = TRIES)
  void appending(@ForAll("made") Made made, @ForAll @Size(min = 1, max = 5) List<@From("ids") WriteId> ids) {
    Lineage lineage = made.lineage();
    LineageModel expected = made.model().union(LineageModel.of(new HashSet<>(ids), Set.of(), Set.of()));
    assertThat(seen(lineage.including(ids))).isEqualTo(expected);
    Lineage oneByOne = lineage;
    for (WriteId id : ids) {
      oneByOne = oneByOne.including(id);
      assertThat(oneByOne.covers(id)).isTrue();
    }
    assertThat(seen(oneByOne)).isEqualTo(expected);
    assertThat(seen(Lineage.deserialize(oneByOne.serialize()))).isEqualTo(expected);
    assertThat(seen(lineage)).isEqualTo(made.model());
  }

  /** LIN-21, LIN-23, LIN-27. */
  @Property(tries = TRIES)
  void difference(@ForAll("made") Made one, @ForAll("made") Made two) {
    Lineage a = one.lineage();
    Lineage b = two.lineage();
    Set<WriteId> rest = one.model().beyond(two.model());
    assertThat(seen(a.without(b))).isEqualTo(one.model().withEntries(rest));
    assertThat(seen(a.beyond(b))).isEqualTo(new LineageModel(rest, Set.of(), Set.of()));
    assertThat(seen(b.union(a.addedTo(b)))).isEqualTo(seen(b.union(a)));
    assertThat(seen(a.union(b).addedTo(b))).isEqualTo(seen(a.addedTo(b)));
  }

  /** LIN-21, LIN-22, LIN-23. */
  @Property(tries = TRIES)
  void takingOut(@ForAll("made") Made made, @ForAll("ids") WriteId id) {
    Lineage lineage = made.lineage();
    LineageModel model = made.model();
    LineageModel one = LineageModel.of(Set.of(id), Set.of(), Set.of());
    assertThat(seen(lineage.without(id))).isEqualTo(model.withEntries(model.beyond(one)));
    assertThat(lineage.covers(id)).isEqualTo(model.entries().stream().anyMatch(other -> LineageModel.covers(other, id)));
    Lineage without = lineage.without(id.store());
    assertThat(without.stores()).doesNotContain(id.store());
    assertThat(without.incomplete()).doesNotContain(id.store());
    for (WriteId each : lineage) {
      assertThat(lineage.without(each).covers(each)).isFalse();
      assertThat(seen(lineage.without(each).including(each))).isEqualTo(model);
    }
  }

  /** LIN-15, LIN-16, LIN-18, LIN-23. */
  @Property(tries = TRIES)
  void incompleteness(@ForAll("made") Made made, @ForAll("ids") WriteId any) {
    Lineage lineage = made.lineage();
    Set<String> flag = made.model().incomplete();
    assertThat(lineage.isComplete()).isEqualTo(flag.isEmpty());
    assertThat(lineage.isComplete(Set.of(any.store()))).isEqualTo(!flag.contains("") && !flag.contains(any.store()));
    assertThat(lineage.markedIncomplete().incomplete()).containsExactly("");
    assertThat(lineage.markedIncomplete(any.store()).isComplete(Set.of(any.store()))).isFalse();
    assertThat(lineage.vouched().isComplete()).isTrue();
    assertThat(lineage.markedIncomplete(any.store())).isEqualTo(lineage);
  }

  /** WIRE-32 to WIRE-36: within the budget, whole sections only, and nothing is lost without its mark. */
  @Property(tries = TRIES)
  void budget(@ForAll("made") Made made, @ForAll @IntRange(max = 400) int budget) {
    LineageModel model = made.model();
    Lineage lineage = Lineage.deserialize(model.text());
    Lineage fitted = lineage.fit(budget);
    assertThat(fitted.serialize().length()).isLessThanOrEqualTo(Math.max(budget, "1~_.i".length()));
    assertThat(seen(fitted)).isEqualTo(model.text().length() <= budget ? model : model.fitted(budget));
    assertThat(seen(lineage)).isEqualTo(model);
  }

  /** WIRE-12, WIRE-37: what is written can be read, and what was too much is marked. */
  @Property(tries = 60)
  void whatIsWrittenIsBounded(
      @ForAll @Size(min = 1, max = 6) List<@IntRange(min = 1, max = 400) Integer> sizes, @ForAll boolean opaque) {
    List<WriteId> ids = new ArrayList<>();
    for (int store = 0; store < sizes.size(); store++) {
      for (int key = 0; key < sizes.get(store); key++) {
        ids.add(new WriteId("s" + store, "k" + key, opaque ? new Opaque("m".repeat(12)) : new Ordered("", key)));
      }
    }
    Lineage lineage = Lineage.of(ids);
    String text = lineage.serialize();
    assertThat(text.length()).isLessThanOrEqualTo(WireForm.MAX_BYTES);
    Lineage back = Lineage.deserialize(text);
    assertThat(back.size()).isLessThanOrEqualTo(WireForm.MAX_ENTRIES);
    assertThat(back.isCoveredBy(lineage)).isTrue();
    Set<String> lost = lineage.beyond(back).stores();
    assertThat(back.incomplete().contains("") || back.incomplete().equals(lost)).isTrue();
  }

  /** LIN-11: a hundred thousand writes to a store of positions are one entry. */
  @Property(tries = 1)
  void theNumberOfWritesDoesNotMatter() {
    Lineage lineage = Lineage.EMPTY;
    for (int counter = 1; counter <= 100_000; counter++) {
      lineage = lineage.including(WriteId.position("posts", "e", counter));
    }
    assertThat(lineage.serialize()).isEqualTo("1~posts..e.100000");
    // WIRE-39
    assertThat(WriteId.position("blog-posts", "8371ab90c2d4e6f1", -1).section().length()).isLessThan(80);
  }
}
