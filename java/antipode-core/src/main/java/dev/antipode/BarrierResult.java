package dev.antipode;

import dev.antipode.internal.model.CodedText;
import dev.antipode.internal.model.Display;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * What a barrier proved: a verdict a store, and two bits (BAR-10, BAR-14, BAR-15). It has no single truth: ask for
 * {@link #satisfied} or {@link #complete}.
 */
public final class BarrierResult {
  private final boolean satisfied;
  private final boolean leftUnjudged;
  private final boolean vacuous;
  private final boolean dryRun;
  private final Duration waited;
  private final List<String> off;
  private final List<Gap> gaps;
  private final Supplier<Map<String, StoreResult>> judge;
  private volatile Map<String, StoreResult> stores;

  private BarrierResult(Builder parts) {
    satisfied = parts.satisfied;
    leftUnjudged = parts.leftUnjudged;
    vacuous = parts.vacuous;
    dryRun = parts.dryRun;
    waited = parts.waited;
    off = parts.off;
    gaps = parts.gaps;
    judge = parts.judge;
  }

  /** Nothing that was asked for is missing here. */
  public boolean satisfied() {
    return satisfied;
  }

  /** Satisfied, and nothing was left unjudged: no store elsewhere, no server left out, nothing lost on the way. */
  public boolean complete() {
    return satisfied && !leftUnjudged;
  }

  /** The lineage had writes, and none of their stores is registered here (BAR-17). */
  public boolean vacuous() {
    return vacuous;
  }

  /** Nothing was waited for and nothing enforced (BAR-48). */
  public boolean dryRun() {
    return dryRun;
  }

  /** How long it took. */
  public Duration waited() {
    return waited;
  }

  /** Why it is not complete, as far as this process knows (BAR-19). */
  public List<Gap> gaps() {
    return gaps;
  }

  /** The verdict of each store that was judged or is elsewhere, by name. */
  public Map<String, StoreResult> stores() {
    Map<String, StoreResult> judged = stores;
    if (judged == null) {
      judged = judge.get(); // settled needs do not change, so that twice harms nothing
      stores = judged;
    }
    return judged;
  }

  /**
   * The verdict of one store.
   *
   * @throws IllegalArgumentException where the result says nothing of it
   */
  public StoreResult store(String name) {
    StoreResult found = stores().get(name);
    if (found == null) {
      throw new IllegalArgumentException("the result says nothing of " + name + ": " + stores().keySet());
    }
    return found;
  }

  /** The outcome in sentences, one line a store, each with its code (OBS-15). */
  public String explain() {
    List<String> lines = new ArrayList<>();
    boolean isEmpty = off != null && off.isEmpty() && stores().isEmpty();
    lines.add(CodedText.of(toString(), isEmpty ? "AP102" : ""));
    stores().forEach((name, result) -> lines.add(CodedText.of(
        "  %s: %s%s (%s)".formatted(
            Display.shown(name), result.verdict(), result.kind() == null ? "" : ", " + result.kind(), result.reason()),
        result.code())));
    for (Gap gap : gaps) {
      String line = "  incomplete: %s %s %s".formatted(gap.reason(), Display.shown(gap.store()), gap.detail());
      lines.add(CodedText.of(line.stripTrailing(), gap.code()));
    }
    return String.join("\n", lines);
  }

  /** The outcome in one line. */
  @Override
  public String toString() {
    if (off == null) {
      return "switched off (mode=off): nothing was looked at or waited for";
    }
    List<String> told = new ArrayList<>();
    List<String> elsewhere = new ArrayList<>(); // names that only came over the wire
    stores().forEach((name, result) -> {
      if (result.verdict() == Verdict.ELSEWHERE) {
        elsewhere.add(name);
      } else {
        told.add(shortly(name, result));
      }
    });
    if (!elsewhere.isEmpty()) {
      told.add(Display.shown(elsewhere) + " elsewhere (not registered in this process)");
    }
    off.forEach(name -> told.add(name + " switched off (its mode), not looked at"));
    String how = dryRun
        ? "dry run, nothing was waited for"
        : "%s in %d ms".formatted(satisfied ? "satisfied" : "not satisfied", Math.round(waited.toNanos() / 1e6));
    return how + ": " + (told.isEmpty() ? "nothing to wait for" : String.join("; ", told));
  }

  private static String shortly(String name, StoreResult result) {
    return switch (result.verdict()) {
      case VISIBLE -> {
        List<String> left = result.leftOut();
        yield name + " visible" + (left.isEmpty() ? "" : left.stream().collect(Collectors.joining(", ", " (", " left out)")));
      }
      default -> name + " " + result.verdict().word().replace('_', ' ') + ": " + result.reason();
    };
  }

  /** Makes results; what the engine uses. */
  public static final class Builder {
    private boolean satisfied;
    private boolean leftUnjudged;
    private boolean vacuous;
    private boolean dryRun;
    private Duration waited = Duration.ZERO;
    private List<String> off = List.of();
    private List<Gap> gaps = List.of();
    private Supplier<Map<String, StoreResult>> judge = Map::of;

    /** A result that is satisfied or not. */
    public Builder(boolean satisfied) {
      this.satisfied = satisfied;
    }

    /** All of another result, found at once. */
    public Builder(BarrierResult other) {
      satisfied = other.satisfied;
      leftUnjudged = other.leftUnjudged;
      vacuous = other.vacuous;
      dryRun = other.dryRun;
      off = other.off;
      gaps = other.gaps;
      judge = other::stores;
    }

    /** Something was left unjudged. */
    public Builder leftUnjudged(boolean value) {
      leftUnjudged = value;
      return this;
    }

    /** Nothing could be judged. */
    public Builder vacuous(boolean value) {
      vacuous = value;
      return this;
    }

    /** Nobody waited. */
    public Builder dryRun(boolean value) {
      dryRun = value;
      return this;
    }

    /** How long it took. */
    public Builder waited(Duration value) {
      waited = value;
      return this;
    }

    /** Stores of the lineage whose mode is off; null where Antipode itself is. */
    public Builder off(List<String> value) {
      off = value;
      return this;
    }

    /** Why it is not complete. */
    public Builder gaps(List<Gap> value) {
      gaps = value;
      return this;
    }

    /** Finds the verdicts when somebody asks for them. */
    public Builder judge(Supplier<Map<String, StoreResult>> value) {
      judge = value;
      return this;
    }

    /** The result. */
    public BarrierResult build() {
      return new BarrierResult(this);
    }
  }
}
