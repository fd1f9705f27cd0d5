package dev.antipode;

import dev.antipode.internal.model.Budget;
import dev.antipode.internal.model.Names;
import dev.antipode.internal.model.PlainText;
import dev.antipode.internal.model.Section;
import dev.antipode.internal.model.WireForm;
import dev.antipode.internal.model.WireForm.Parts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * An immutable set of write identifiers, kept minimal, with the stores in which something is missing (paper section 5,
 * chapter LIN of the specification).
 *
 * <p>{@link #union} is commutative, associative and idempotent, so lineages may be merged anywhere, in any order, twice.
 * Each store's section stays an unopened string until something is appended to it or merged with it. Order,
 * {@code equals} and {@code hashCode} take no part of {@link #incomplete()} (LIN-14).
 */
public final class Lineage implements Iterable<WriteId> {
  /** The empty, complete lineage: the unit of joining. */
  public static final Lineage EMPTY = new Lineage(Parts.EMPTY);

  private static final Pattern OF_BRANCHES = Pattern.compile("_\\.(task|within)(\\..*)?");
  private static final int CERTAIN = Names.MAX_KEY; // a text so short has not too many entries

  // One of these two is there: the text alone where it is one of plain positions, which is not split before somebody asks.
  private final Parts given;
  private final String plain;

  // The other is made when first asked for; a race makes it twice, which harms nothing.
  private Parts parts;
  private String text;

  private Lineage(Parts given) {
    this.given = given;
    this.plain = null;
  }

  private Lineage(String plain) {
    this.given = null;
    this.plain = plain;
  }

  Parts parts() {
    if (given != null) {
      return given;
    }
    Parts split = parts;
    if (split == null) {
      split = WireForm.split(plain);
      parts = split;
    }
    return split;
  }

  private Lineage(Map<String, String> sections, Set<String> incomplete, List<String> extensions) {
    this(new Parts(sections, incomplete, extensions));
  }

  /** The lineage of these writes. */
  public static Lineage of(WriteId... ids) {
    return of(Arrays.asList(ids));
  }

  /** The lineage of these writes. */
  public static Lineage of(Collection<WriteId> ids) {
    return ids.isEmpty() ? EMPTY : new Lineage(sectionsOf(ids), Set.of(), List.of());
  }

  /**
   * Reads a lineage text, white space around it aside (paper table 2, WIRE-26).
   *
   * @throws MalformedLineageException for a text that is no lineage
   */
  public static Lineage deserialize(String text) {
    if (PlainText.isPlain(text)) {
      return new Lineage(text);
    }
    return new Lineage(WireForm.split(WireForm.stripped(text)));
  }

  /**
   * The lineage as text in the wire form; {@code 1} for the empty one (paper table 2). What no reader would take is not
   * written: past 4,087 bytes or 512 entries sections are left out and marked (WIRE-37).
   */
  public String serialize() {
    if (plain != null) {
      return plain;
    }
    String made = text;
    if (made == null) {
      made = WireForm.join(parts());
      if (made.length() > CERTAIN && !Budget.fits(parts(), made.length(), WireForm.MAX_BYTES)) {
        made = WireForm.join(Budget.fitted(parts(), WireForm.MAX_BYTES, List.of()));
      }
      text = made;
    }
    return made;
  }

  // Joining and taking away

  /** This lineage and one write: a position is raised in a text of plain ones without opening it. */
  public Lineage including(WriteId id) {
    if (plain != null && id.isPosition() && id.version() instanceof Ordered position) {
      int at = PlainText.counterOf(plain, Names.spellName(id.store()), Names.spellName(position.epoch()));
      if (at >= 0 && position.compareCounter(PlainText.counterAt(plain, at)) <= 0) {
        return this;
      }
      if (at >= 0 && PlainText.mayBeRaised(plain)) {
        return new Lineage(PlainText.raised(plain, at, position.counter()));
      }
    }
    return joined(List.of(id));
  }

  /** This lineage and these writes (the paper's {@code append}, as a value). */
  public Lineage including(WriteId... ids) {
    return including(Arrays.asList(ids));
  }

  /** This lineage and these writes. */
  public Lineage including(Collection<WriteId> ids) {
    return ids.isEmpty() ? this : ids.size() == 1 ? including(ids.iterator().next()) : joined(ids);
  }

  private Lineage joined(Collection<WriteId> ids) {
    Map<String, String> sections = new HashMap<>(parts().sections());
    joinInto(sections, sectionsOf(ids));
    return new Lineage(sections, parts().incomplete(), parts().extensions());
  }

  /** The join of two lineages (the paper's {@code transfer}, as a value; LIN-12). */
  public Lineage union(Lineage other) {
    if (other == this || !other.hasContent()) {
      return this;
    }
    if (!hasContent()) {
      return other;
    }
    Map<String, String> sections = new HashMap<>(parts().sections());
    joinInto(sections, other.parts().sections());
    return new Lineage(
        sections,
        WireForm.joinIncomplete(parts().incomplete(), other.parts().incomplete()),
        joinedExtensions(other.parts().extensions()));
  }

  private List<String> joinedExtensions(List<String> others) {
    if (others.isEmpty() || others.equals(parts().extensions())) {
      return parts().extensions();
    }
    Set<String> joined = new TreeSet<>(parts().extensions());
    joined.addAll(others);
    return List.copyOf(joined);
  }

  /** This lineage less what covers or is this write: every entry that the lineage of it alone covers (LIN-21). */
  public Lineage without(WriteId id) {
    return without(of(id));
  }

  /** This lineage less a whole store, positions and its mark of incompleteness included (LIN-22). */
  public Lineage without(String store) {
    String spelled = Names.spellName(store);
    Map<String, String> sections = new HashMap<>(parts().sections());
    sections.remove(spelled);
    Set<String> incomplete = new HashSet<>(parts().incomplete());
    incomplete.remove(spelled);
    return new Lineage(sections, incomplete, parts().extensions());
  }

  /** This lineage less every entry that another one covers; its marks stay (LIN-23). */
  public Lineage without(Lineage covered) {
    return new Lineage(subtract(covered), parts().incomplete(), parts().extensions());
  }

  /**
   * This lineage without the extensions {@code task} and {@code within}, which belong to the text that they came with: they
   * name the branches of whoever takes it in, and a language without branches has none (BRANCH-8).
   */
  Lineage withoutExtensionsOfBranches() {
    if (given == null || given.extensions().isEmpty()) { // a text of plain positions has none
      return this;
    }
    List<String> kept = given.extensions().stream().filter(each -> !OF_BRANCHES.matcher(each).matches()).toList();
    return kept.size() == given.extensions().size() ? this : new Lineage(given.sections(), given.incomplete(), kept);
  }

  /** What this lineage has beyond an earlier one: entries, marks of incompleteness, extensions (LIN-27). */
  public Lineage addedTo(Lineage base) {
    Set<String> incomplete = Set.of();
    if (!base.parts().incomplete().contains("")) {
      incomplete = new HashSet<>(parts().incomplete());
      incomplete.removeAll(base.parts().incomplete());
    }
    List<String> extensions = new ArrayList<>(parts().extensions());
    extensions.removeAll(base.parts().extensions());
    return new Lineage(subtract(base), incomplete, extensions);
  }

  /** The writes of this lineage that another one does not cover, without marks and extensions. */
  public Lineage beyond(Lineage other) {
    return new Lineage(subtract(other), Set.of(), List.of());
  }

  private Map<String, String> subtract(Lineage other) {
    Map<String, String> rest = new HashMap<>();
    parts().sections().forEach((store, section) -> {
      String covering = other.parts().sections().get(store);
      String left = covering == null ? section : Section.subtractTexts(section, covering);
      if (left != null) {
        rest.put(store, left);
      }
    });
    return rest;
  }

  // Extensions

  /** The extensions, as they stand in the text (WIRE-13). */
  public List<String> extensions() {
    return plain != null ? List.of() : parts().extensions();
  }

  /** This lineage with these extensions in place of its own; each is one of the wire form (WIRE-13). */
  public Lineage withExtensions(Collection<String> extensions) {
    List<String> sorted = extensions.stream().distinct().sorted().toList();
    return sorted.equals(extensions()) ? this : new Lineage(parts().sections(), parts().incomplete(), sorted);
  }

  // Comparing

  /** Whether another lineage covers every write of this one: {@code a ≤ b} (LIN-13). */
  public boolean isCoveredBy(Lineage other) {
    for (Map.Entry<String, String> entry : parts().sections().entrySet()) {
      String covering = other.parts().sections().get(entry.getKey());
      if (covering == null || Section.subtractTexts(entry.getValue(), covering) != null) {
        return false;
      }
    }
    return true;
  }

  /** Whether this lineage covers a write. */
  public boolean covers(WriteId id) {
    return of(id).isCoveredBy(this);
  }

  /** BEFORE where the other covers this one and more, AFTER the other way round, EQUAL, or CONCURRENT (LIN-13). */
  public Order compare(Lineage other) {
    boolean below = isCoveredBy(other);
    boolean above = other.isCoveredBy(this);
    if (below) {
      return above ? Order.EQUAL : Order.BEFORE;
    }
    return above ? Order.AFTER : Order.CONCURRENT;
  }

  @Override
  public boolean equals(Object other) {
    if (this == other) {
      return true;
    }
    return other instanceof Lineage lineage
        && parts().sections().keySet().equals(lineage.parts().sections().keySet())
        && (parts().sections().equals(lineage.parts().sections()) || normal().equals(lineage.normal()));
  }

  @Override
  public int hashCode() {
    return normal().hashCode();
  }

  /** The sections, each opened and normalised: equality must not depend on how a text was spelled. */
  private Set<String> normal() {
    return parts().sections().values().stream().map(section -> Section.open(section).text()).collect(Collectors.toSet());
  }

  // Looking in

  /** The write identifiers, in canonical order. */
  public List<WriteId> ids() {
    List<WriteId> ids = new ArrayList<>();
    parts().sections().values().stream().sorted().forEach(section -> addIds(section, ids));
    return ids;
  }

  /** The write identifiers, in canonical order. */
  @Override
  public Iterator<WriteId> iterator() {
    return ids().iterator();
  }

  private static void addIds(String text, List<WriteId> ids) {
    Section section = Section.open(text);
    for (Section.Entry entry : section.entries()) {
      ids.add(WriteId.of(section.store(), entry));
    }
  }

  /** The writes to one store. */
  public List<WriteId> ofStore(String store) {
    List<WriteId> ids = new ArrayList<>();
    String section = parts().sections().get(Names.spellName(store));
    if (section != null) {
      addIds(section, ids);
    }
    return ids;
  }

  /** How many write identifiers are in it. */
  public int size() {
    return parts().sections().values().stream().mapToInt(section -> Section.open(section).size()).sum();
  }

  /** Whether it has no write; it may still be incomplete. */
  public boolean isEmpty() {
    if (plain != null) {
      return plain.equals(WireForm.EMPTY_TEXT);
    }
    return parts().sections().isEmpty();
  }

  /** Whether there is anything to send: a write, a mark of incompleteness or an extension (WIRE-31). */
  public boolean hasContent() {
    if (plain != null) {
      return !isEmpty();
    }
    return !(parts().sections().isEmpty() && parts().incomplete().isEmpty() && parts().extensions().isEmpty());
  }

  /** Names of the stores that it has writes of, in order. */
  public Set<String> stores() {
    return unspelled(parts().sections().keySet());
  }

  /** One store's section as it stands, unopened, or null: a value to compare, not to parse. */
  public String sectionText(String store) {
    if (plain != null) {
      return PlainText.section(plain, Names.spellName(store));
    }
    return parts().sections().get(Names.spellName(store));
  }

  /** The counter, where a store's section is one position of this epoch and nothing else. It opens nothing. */
  public OptionalLong onlyPosition(String store, String epoch) {
    String section = sectionText(store);
    String head = Names.spellName(store) + ".." + Names.spellName(epoch) + ".";
    return section != null && section.startsWith(head) && section.indexOf('.', head.length()) < 0
        ? OptionalLong.of(Long.parseUnsignedLong(section, head.length(), section.length(), 10))
        : OptionalLong.empty();
  }

  // Incompleteness

  /** Names of the stores in which something that belonged here is missing; the empty name means anywhere (LIN-15). */
  public Set<String> incomplete() {
    return parts().incomplete().isEmpty() ? Set.of() : unspelled(parts().incomplete());
  }

  /** Whether nothing is missing. */
  public boolean isComplete() {
    return plain != null || parts().incomplete().isEmpty();
  }

  /** Whether nothing is missing in these stores (LIN-18). */
  public boolean isComplete(Collection<String> stores) {
    return parts().incomplete().isEmpty()
        || !parts().incomplete().contains("")
            && stores.stream().map(Names::spellName).noneMatch(parts().incomplete()::contains);
  }

  /** This lineage with a mark that something is missing in these stores, or anywhere if none is named. */
  public Lineage markedIncomplete(String... stores) {
    return markedIncomplete(Arrays.asList(stores));
  }

  /** This lineage with a mark that something is missing in these stores, or anywhere if none is named. */
  public Lineage markedIncomplete(Collection<String> stores) {
    Set<String> marks = stores.isEmpty()
        ? WireForm.ANYWHERE
        : stores.stream().map(Names::spellName).collect(Collectors.toSet());
    return new Lineage(
        parts().sections(), WireForm.joinIncomplete(parts().incomplete(), marks), parts().extensions());
  }

  /** This lineage without any mark of incompleteness: the application vouches that nothing is missing (LIN-23). */
  public Lineage vouched() {
    return parts().incomplete().isEmpty() ? this : new Lineage(parts().sections(), Set.of(), parts().extensions());
  }

  // Size

  /** This lineage in at most {@code budget} bytes, where nothing is known to have changed here. */
  public Lineage fit(int budget) {
    return fit(budget, List::of);
  }

  /**
   * This lineage in at most {@code budget} bytes: whole sections are left out, first what passed through, the longest first, and
   * their stores marked; itself where it fits (WIRE-32 to WIRE-35).
   *
   * @param changed the stores whose sections changed here, the oldest change first; asked only where it does not fit
   */
  public Lineage fit(int budget, Supplier<List<String>> changed) {
    int most = Math.min(budget, WireForm.MAX_BYTES);
    return Budget.fits(parts(), Budget.lengthOf(parts()), most)
        ? this
        : new Lineage(Budget.fitted(parts(), most, changed.get().stream().map(Names::spellName).toList()));
  }

  /** The stores of which this holds another section than an earlier one did, in order. */
  Set<String> changedSince(Lineage before) {
    Map<String, String> known = before.parts().sections();
    Set<String> changed = new TreeSet<>();
    parts().sections().forEach((store, section) -> {
      if (!section.equals(known.get(store))) {
        changed.add(Names.unspellName(store));
      }
    });
    return changed;
  }

  /** The wire form: for people and tools. It holds keys, which can be private (OBS-5). */
  @Override
  public String toString() {
    return serialize();
  }

  private static Set<String> unspelled(Set<String> spelled) {
    return spelled.stream().map(Names::unspellName).collect(Collectors.toCollection(TreeSet::new));
  }

  /** The sections of these writes; each is made once, however many writes there are. */
  private static Map<String, String> sectionsOf(Collection<WriteId> ids) {
    Map<String, List<String>> singles = new HashMap<>();
    for (WriteId id : ids) {
      String single = id.section();
      singles.computeIfAbsent(single.substring(0, single.indexOf('.')), store -> new ArrayList<>()).add(single);
    }
    Map<String, String> sections = new HashMap<>();
    singles.forEach((store, entries) -> sections.put(store, Section.of(entries)));
    return sections;
  }

  private static void joinInto(Map<String, String> sections, Map<String, String> more) {
    more.forEach((store, section) -> sections.merge(store, section, Section::joinTexts));
  }
}
