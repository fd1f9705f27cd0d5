package dev.antipode.redis;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Policy;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.lab.CallFaults;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;

/**
 * A process in which the n-th call of a function of the system fails, as {@link NthFailureTest} starts it (BAR-61). Each round
 * freezes what the replica applies, writes, has a call fail while barriers are asked, and thaws; it prints how many calls failed.
 */
final class LackingProcess {
  private static final String STORE = "posts";
  private static final Duration OUT_AFTER = Duration.ofMillis(400); // a fault that goes on does so for longer
  private static final Duration BRIEF = Duration.ofMillis(150);
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final Duration WHOLE = Duration.ofSeconds(10); // five, and another process may have the machine
  private static final int IN_A_ROW = 5;
  private static final Duration TAKEN_IN_A_ROW = Duration.ofSeconds(2); // each that wakes nobody would take most of one

  private final Jedis replica;
  private final RedisClient plain;
  private final StoreOptions options;
  private final boolean isAsync;
  private UnifiedJedis posts; // wrapped by the first round
  private int keys;

  private LackingProcess(String primary, String replica, boolean isAsync) {
    Antipode.configure(
        Settings.defaults().freePathTtl(Duration.ZERO).replicaOutAfter(OUT_AFTER).reconnect(Duration.ofMillis(100)));
    this.replica = new Jedis(replica);
    this.replica.clientUnpause();
    this.plain = RedisClient.create(primary);
    this.options = StoreOptions.named(STORE).replicas(replica);
    this.isAsync = isAsync;
    plain.ping(); // its connection is there
  }

  /** Plays rounds. Arguments: the servers, the function, its kind, "future" or "blocking", "cold" or "warm", the numbers. */
  public static void main(String... words) throws Exception {
    CallFaults.play(() -> play(words));
  }

  private static void play(String... words) throws Exception {
    LackingProcess process = new LackingProcess(words[0], words[1], words[4].equals("future"));
    if (words[5].equals("warm")) {
      process.judged(process.write(), LONG);
    }
    int failed = 0;
    for (int at = 6; at < words.length; at++) {
      long calls = process.round("arm " + words[2] + " " + words[at] + " " + words[3], words[3].equals("on"));
      System.out.println(words[at] + ": " + calls);
      failed += calls > 0 ? 1 : 0;
    }
    System.out.println("whole " + failed);
  }

  private Lineage write() {
    keys++;
    if (posts == null) {
      posts = AntipodeRedis.wrap(plain, options);
    }
    try (LineageScope scope = Antipode.scope()) {
      posts.set(key(), "v");
      return scope.lineage();
    }
  }

  private String key() {
    return "java " + ProcessHandle.current().pid() + " " + keys;
  }

  private long round(String words, boolean goesOn) throws Exception {
    replica.sendCommand(() -> "CLIENT".getBytes(StandardCharsets.US_ASCII), "PAUSE", "600000", "WRITE");
    boolean countsCommands = !words.startsWith("arm poll"); // of which the application's own command has some
    CallFaults.say(words);
    CallFaults.say(countsCommands ? "count" : "spare");
    Lineage lineage = write();
    CallFaults.say("spare");
    check(lineage.ofStore(STORE).size() == 1, "the write is lost");
    check(replica.get(key()) == null, "the replica is not frozen");
    long over = System.nanoTime() + (goesOn ? OUT_AFTER.toNanos() * 3 / 2 : 0);
    do {
      CallFaults.say(countsCommands ? "count" : "spare");
      BarrierResult result = judged(lineage, BRIEF);
      CallFaults.say("spare");
      check(!result.satisfied(), "A FALSE PASS: " + result.explain());
    } while (System.nanoTime() < over);
    replica.clientUnpause();
    long failed = CallFaults.say("disarm");
    until(() -> judged(lineage, Duration.ofSeconds(1)).complete(), "barriers pass");
    until(this::isPrompt, "a new barrier wakes the thread");
    return failed;
  }

  private boolean isPrompt() {
    long began = System.nanoTime();
    for (int count = 0; count < IN_A_ROW; count++) {
      check(judged(write(), LONG).complete(), "a barrier passes");
    }
    return System.nanoTime() - began < TAKEN_IN_A_ROW.toNanos();
  }

  /** What a barrier says, by its deadline; a pass is true. */
  private BarrierResult judged(Lineage lineage, Duration timeout) {
    BarrierOptions options = BarrierOptions.defaults()
        .lineage(lineage)
        .timeout(timeout)
        .onTimeout(Policy.PROCEED)
        .onUnproven(Policy.PROCEED);
    long began = System.nanoTime();
    BarrierResult result;
    try {
      result = isAsync
          ? Antipode.barrierAsync(options).get(timeout.plus(WHOLE).toMillis(), TimeUnit.MILLISECONDS)
          : Antipode.barrier(options);
    } catch (InterruptedException | ExecutionException | TimeoutException error) {
      throw new AssertionError("no result", error);
    }
    check(System.nanoTime() - began < timeout.plus(WHOLE).toNanos(), "past its deadline: " + result.explain());
    check(!result.satisfied() || replica.get(key()) != null, "A FALSE PASS: " + result.explain());
    check(result.store(STORE).leftOut().isEmpty(), "left out: " + result.explain());
    return result;
  }

  private static void until(BooleanSupplier condition, String what) {
    long deadline = System.nanoTime() + WHOLE.toNanos();
    while (!condition.getAsBoolean()) {
      check(System.nanoTime() < deadline, "in vain: " + what);
    }
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }
}
