package dev.antipode.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What the failover fuzzer found; {@link #faults} must stay empty. */
public final class FailoverTally {
  private int runs;
  private int writes;
  private int positionless;
  private int lost;
  private int present;
  private int presentUnproven;
  private final Map<String, Integer> judged = new TreeMap<>();
  private final List<String> lostPassed = new ArrayList<>();
  private final List<String> hangs = new ArrayList<>();
  private final List<String> rash = new ArrayList<>();
  private final List<String> lookedEmpty = new ArrayList<>();

  /** Nothing found yet. */
  public FailoverTally() {}

  synchronized void ran() {
    runs++;
  }

  synchronized void wrote(boolean hasVersion) {
    writes++;
    positionless += hasVersion ? 0 : 1;
  }

  synchronized void lost() {
    lost++;
  }

  synchronized void present(boolean proved) {
    present++;
    presentUnproven += proved ? 0 : 1;
  }

  synchronized void judged(String how) {
    judged.merge(how, 1, Integer::sum);
  }

  synchronized void falsePass(String about) {
    lostPassed.add(about);
  }

  synchronized void hang(String about) {
    hangs.add(about);
  }

  synchronized void rash(String about) {
    rash.add(about);
  }

  synchronized void lookedEmpty(String about) {
    lookedEmpty.add(about);
  }

  /** Passes of what the server had not got. */
  public synchronized List<String> falsePasses() {
    return List.copyOf(lostPassed);
  }

  /** Answered unproven in the middle of a run, and visible within the deadline. */
  public synchronized List<String> rashAnswers() {
    return List.copyOf(rash);
  }

  /** Everything that must not be. */
  public synchronized List<String> faults() {
    List<String> all = new ArrayList<>(lostPassed);
    all.addAll(hangs);
    all.addAll(rash);
    all.addAll(lookedEmpty);
    return all;
  }

  /** Of the writes that a server has at the end, the share that cannot be proved there. */
  public synchronized double unprovenShare() {
    return (double) presentUnproven / Math.max(present, 1);
  }

  /**
   * Asserts that nothing passed falsely, hung or was called unproven rashly, and that the runs were worth something.
   *
   * @param mostUnproven the share of the present writes that may be unproven at the end
   * @param mostRash the share of the answers that may be unproven for what is seen within the deadline: where a position
   *     lies behind its write, a history may fork between the two
   */
  public synchronized void check(double mostUnproven, double mostRash) {
    List<String> faults = new ArrayList<>(lostPassed);
    faults.addAll(hangs);
    faults.addAll(lookedEmpty);
    int answers = judged.values().stream().mapToInt(Integer::intValue).sum();
    if (rash.size() > mostRash * answers) {
      faults.addAll(rash);
    }
    if (!faults.isEmpty()) {
      throw new AssertionError(this + "\n" + String.join("\n", faults.subList(0, Math.min(20, faults.size()))));
    }
    if (lost == 0) {
      throw new AssertionError("no write was lost: " + this);
    }
    if (judged.getOrDefault("visible", 0) == 0) {
      throw new AssertionError("nothing was proved: " + this);
    }
    if (unprovenShare() > mostUnproven) {
      throw new AssertionError("too many are unproven: " + this);
    }
  }

  @Override
  public synchronized String toString() {
    return "%d runs, %d writes (%d without a version), %d lost%n".formatted(runs, writes, positionless, lost)
        + "  false passes %d, hangs %d, unproven though visible in time %d, lost and looking empty %d%n"
            .formatted(lostPassed.size(), hangs.size(), rash.size(), lookedEmpty.size())
        + "  present at a server %d, of these unproven at the end %d (%.2f %%)%n"
            .formatted(present, presentUnproven, 100 * unprovenShare())
        + "  judged in the middle: " + judged;
  }
}
