package dev.antipode.testing;

import dev.antipode.Antipode;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Verdict;
import dev.antipode.internal.engine.RegionStore;
import dev.antipode.internal.engine.ServerEngine;
import dev.antipode.internal.engine.ServerWait;
import dev.antipode.internal.store.Registry;
import dev.antipode.shim.Server;
import dev.antipode.testing.FailoverDriver.ValueCheck;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;

/** One run of the failover fuzzer, on servers of its own. */
final class FailoverRun {
  /** How much longer than its deadline a wait may take on a loaded machine before it counts as a hang. */
  private static final Duration SLACK = Duration.ofSeconds(3);

  /** One write, and the lineage that it left. */
  private record FailoverWrite(String key, String value, Lineage lineage) {}

  private final FailoverDriver driver;
  private final long seed;
  private final FailoverTally tally;
  private final Random chance;
  private final List<FailoverWrite> written = new ArrayList<>();
  private final Map<String, Server> servers = new HashMap<>();

  FailoverRun(FailoverDriver driver, long seed, FailoverTally tally) {
    this.driver = driver;
    this.seed = seed;
    this.tally = tally;
    this.chance = new Random(seed);
    List<ServerEngine> found = RegionStore.of(Registry.current().need(driver.name())).servers(false);
    for (String name : driver.servers()) {
      List<ServerEngine> named =
          found.stream().filter(server -> server.address().contains(driver.address(name))).toList();
      if (named.size() != 1) {
        throw new AssertionError(named.size() + " servers of this address: " + driver.address(name));
      }
      servers.put(name, named.get(0));
    }
  }

  // What happens

  void play() {
    write(between(3, 8));
    for (int histories = between(2, 4); histories > 0; histories--) {
      for (int troubles = between(1, 3); troubles > 0; troubles--) {
        oneOf(List.<Runnable>of(this::slowLink, this::pauseLink, this::restartReplica, this::judgeSome)).run();
        write(between(1, 6));
      }
      settleMarks();
      List<Runnable> failovers = new ArrayList<>(
          List.of(this::loseAndPromote, this::loseAndPromote, this::promote, this::twice));
      if (driver.mayCrashPrimary()) {
        failovers.add(this::crashPrimary);
      }
      oneOf(failovers).run();
      write(between(0, 4));
      judgeSome();
    }
    finish();
  }

  private int between(int least, int most) {
    return least + chance.nextInt(most - least + 1);
  }

  private <T> T oneOf(List<T> things) {
    return things.get(chance.nextInt(things.size()));
  }

  private boolean happens(double share) {
    return chance.nextDouble() < share;
  }

  private void write(int count) {
    for (int number = 0; number < count; number++) {
      writeAt(driver.primary());
    }
  }

  private void writeAt(String server) {
    String key = "w-" + written.size();
    String value = seed + "-" + written.size();
    Lineage lineage;
    try (LineageScope opened = Antipode.scope()) {
      driver.write(server, key, value);
      lineage = opened.lineage();
    }
    boolean hasVersion = !lineage.ofStore(driver.name()).isEmpty();
    tally.wrote(hasVersion);
    if (!hasVersion && lineage.isComplete()) {
      tally.lookedEmpty("seed " + seed + ": " + key);
    }
    written.add(new FailoverWrite(key, value, lineage));
  }

  /** Mostly the marks of this epoch get the time that they have in real life, sometimes not. */
  private void settleMarks() {
    if (happens(0.85)) {
      driver.settleMarks();
    }
  }

  private String aReplica() {
    return oneOf(driver.replicas());
  }

  private void slowLink() {
    driver.lag(aReplica(), oneOf(List.of(0, 5, 30)));
  }

  private void pauseLink() {
    String replica = aReplica();
    driver.cut(replica, chance);
    write(between(0, 3));
    judgeSome();
    driver.heal(replica, happens(0.5));
  }

  private void restartReplica() {
    int count = between(0, 4);
    driver.restartReplica(aReplica(), () -> write(count), happens(0.5));
  }

  /** Nothing is lost on purpose: what is on its way arrives first. */
  private void promote() {
    try (ParkedBarriers parked = new ParkedBarriers(Duration.ofSeconds(3))) {
      driver.promote(aReplica(), null);
    }
    rejoin();
  }

  private void loseAndPromote() {
    String old = driver.primary();
    String target = aReplica();
    if (happens(0.5)) {
      judgeUntilThere(target);
    }
    int count = between(6, 12);
    try (ParkedBarriers parked = new ParkedBarriers(Duration.ofSeconds(2))) {
      driver.promote(target, () -> {
        for (int number = 0; number < count; number++) {
          writeAt(old);
        }
      });
    }
    rejoin();
  }

  /** The adversary: a second promotion with no write between. */
  private void twice() {
    oneOf(List.<Runnable>of(this::promote, this::loseAndPromote)).run();
    settleMarks();
    driver.promote(aReplica(), null);
    rejoin();
  }

  /** The primary starts again from an older copy: what it wrote since is lost, its replicas are ahead. */
  private void crashPrimary() {
    int count = between(1, 5);
    driver.crashPrimary(() -> write(count));
  }

  /** The old primary becomes a replica of the new one, now or after some writes. */
  private void rejoin() {
    if (happens(0.5)) {
      write(between(1, 3));
    }
    for (String name : driver.servers()) {
      if (!name.equals(driver.primary()) && !driver.replicas().contains(name)) {
        driver.rejoin(name, happens(0.5));
      }
    }
  }

  /** The last write is there, or a while has passed. */
  private void judgeUntilThere(String name) {
    FailoverWrite last = written.get(written.size() - 1);
    if (!last.lineage.ofStore(driver.name()).isEmpty()) {
      judge(last, name, Duration.ofSeconds(2));
    }
  }

  // Judging

  private void judgeSome() {
    if (written.isEmpty()) {
      return;
    }
    Set<FailoverWrite> chosen = new LinkedHashSet<>(written.subList(Math.max(0, written.size() - 4), written.size()));
    chosen.add(oneOf(written));
    String name = oneOf(driver.servers());
    for (FailoverWrite one : chosen) {
      judge(one, name, Duration.ofMillis(oneOf(List.of(50, 200))));
    }
  }

  /** Judges one write at one server, and looks at once whether it is there; null where it has no version. */
  private Verdict judge(FailoverWrite one, String name, Duration timeout) {
    if (one.lineage.ofStore(driver.name()).isEmpty()) {
      return null;
    }
    Object before = driver.history(name);
    long began = System.nanoTime();
    Verdict verdict = ServerWait.at(servers.get(name), one.lineage, timeout);
    Duration took = Duration.ofNanos(System.nanoTime() - began);
    String about = about(one, "at " + name, verdict, took);
    tally.judged(verdict.word());
    if (took.compareTo(timeout.plus(SLACK)) > 0) {
      tally.hang(about);
    }
    if (verdict == Verdict.VISIBLE && driver.shows(name, one.key, one.value) == ValueCheck.NO) {
      Object after = driver.history(name);
      if (before != null && Objects.equals(before, after)) {
        tally.falsePass(about + "; it is at " + after);
      } else {
        tally.judged("replaced while looking");
      }
    }
    return verdict;
  }

  private String about(FailoverWrite one, String where, Verdict verdict, Duration took) {
    return "seed %d: %s (%s) %s: %s after %d ms"
        .formatted(seed, one.key, one.lineage.serialize(), where, verdict, took.toMillis());
  }

  // The end

  private void finish() {
    driver.calm();
    write(between(1, 20)); // the last history may grow past what earlier ones lost
    driver.settleMarks();
    driver.waitCaughtUp();
    for (FailoverWrite one : written) {
      List<String> there =
          driver.servers().stream().filter(name -> driver.shows(name, one.key, one.value) == ValueCheck.YES).toList();
      if (there.isEmpty()) {
        tally.lost();
      }
      for (String name : driver.servers()) {
        Verdict verdict = judge(one, name, Duration.ofMillis(500));
        if (verdict != null && there.contains(name)) {
          tally.present(verdict == Verdict.VISIBLE);
        }
      }
    }
    tally.ran();
  }

  /** Barriers that wait while something is done to the servers: at each server, for each of the last writes. */
  private final class ParkedBarriers implements AutoCloseable {
    private final Duration timeout;
    private final List<Thread> threads = new ArrayList<>();

    ParkedBarriers(Duration timeout) {
      this.timeout = timeout;
      for (FailoverWrite one : written.subList(Math.max(0, written.size() - 3), written.size())) {
        if (one.lineage.ofStore(driver.name()).isEmpty()) {
          continue;
        }
        for (String name : driver.servers()) {
          Thread thread = new Thread(() -> await(one, name), "fuzz-parked");
          thread.setDaemon(true);
          thread.start();
          threads.add(thread);
        }
      }
    }

    private void await(FailoverWrite one, String name) {
      long began = System.nanoTime();
      Verdict verdict = ServerWait.at(servers.get(name), one.lineage, timeout);
      Duration took = Duration.ofNanos(System.nanoTime() - began);
      String about = about(one, "parked at " + name, verdict, took);
      tally.judged("parked " + verdict.word());
      if (took.compareTo(timeout.plus(SLACK)) > 0) {
        tally.hang(about);
      }
      if (verdict == Verdict.UNPROVEN) {
        // What becomes visible within the deadline must not have been called unproven before.
        while (System.nanoTime() - began < timeout.toNanos()) {
          if (driver.shows(name, one.key, one.value) == ValueCheck.YES) {
            tally.rash(about);
            return;
          }
          sleep();
        }
      }
    }

    private void sleep() {
      try {
        Thread.sleep(10);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void close() {
      for (Thread thread : threads) {
        try {
          thread.join(timeout.plus(SLACK.multipliedBy(2)).toMillis());
        } catch (InterruptedException interrupted) {
          Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
          tally.hang("seed " + seed + ": a parked barrier did not end");
        }
      }
    }
  }
}
