package dev.antipode.internal.engine;

import dev.antipode.Antipode;
import dev.antipode.Settings;
import dev.antipode.StoreOptions;
import dev.antipode.WriteId;
import dev.antipode.internal.base.Ticks;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Shims;
import dev.antipode.shim.Visibility;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A barrier at two servers whose threads are the test's own, and what is true of it (BAR-32, BAR-63;
 * {@code spec/tla/Reopen.tla}).
 */
final class Race {
  /** What is told of a race in which nothing was that may never be. */
  static final String STANDS = "stands";

  private static final WriteId POSITION = WriteId.position("log", "e1", 5);
  private static final int ROUNDS = 8;

  /** A server that has the write, and is led to other data at times. The lock of its race guards it. */
  private static final class Replica {
    Race race;
    int data; // how often they were replaced
    boolean isReplaced; // just now
    int shownFrom = -1; // which of them showed the write last: these,
    int shownTo = -1; // or those of behind a replacement that was under way

    void show() {
      shownFrom = data;
      shownTo = isReplaced ? data + 1 : data;
    }

    boolean stands() {
      return shownTo >= data && shownFrom <= (isReplaced ? data + 1 : data);
    }
  }

  private static final class RaceShim extends Shim {
    @Override
    public String kind() {
      return "race";
    }

    @Override
    public Capabilities capabilities() {
      return Capabilities.positions();
    }

    @Override
    public String address(Object target) {
      return "b";
    }

    @Override
    public List<Visibility> visible(List<WriteId> ids, Server server) {
      Replica replica = (Replica) server.target();
      replica.race.show(replica);
      server.applied("i", "e1", Map.of("e1", 5L));
      return Collections.nCopies(ids.size(), Visibility.VISIBLE);
    }
  }

  private static final RegionStore STORE;
  // What the engine's thread does, done by a thread of the test.
  private static final MethodHandle ASK;
  private static final VarHandle ASKER;
  private static final VarHandle THREAD;

  static {
    // Proofs do not age: how busy the machine is decides nothing.
    Antipode.configure(Settings.defaults().freePathTtl(Duration.ofHours(1)).reconnect(Duration.ofHours(1)));
    STORE = RegionStore.of(Shims.join(StoreOptions.named("log"), RaceShim::new));
    try {
      MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(Asker.class, MethodHandles.lookup());
      ASK = lookup
          .unreflect(Asker.class.getDeclaredMethod("ask", boolean.class))
          .asType(MethodType.methodType(Object.class, Asker.class, boolean.class));
      THREAD = lookup.findVarHandle(Asker.class, "thread", Thread.class);
      ASKER = MethodHandles.privateLookupIn(ServerEngine.class, MethodHandles.lookup())
          .findVarHandle(ServerEngine.class, "asker", Asker.class);
    } catch (ReflectiveOperationException error) {
      throw new ExceptionInInitializerError(error);
    }
  }

  private final Replica[] replicas = {new Replica(), new Replica()};
  private final ServerEngine[] servers = new ServerEngine[replicas.length];
  private final WaitGroup group = new WaitGroup(TimeUnit.MINUTES.toNanos(1), this::wake);
  private final AtomicInteger wakings = new AtomicInteger();
  // Under the lock of this:
  private boolean stood; // there was an instant at which each had shown the write of the data that it had then
  private boolean neverStood; // somebody was told that it passes, and it had not stood
  // Of the thread that gives up, or of the one that judges:
  private boolean isOver;
  private boolean isForgotten;

  Race() {
    for (int which = 0; which < servers.length; which++) {
      replicas[which].race = this;
      servers[which] = new ServerEngine(STORE, "b", replicas[which]);
      THREAD.set(asker(which), Thread.currentThread()); // none is started
    }
  }

  private Asker asker(int which) {
    return (Asker) ASKER.get(servers[which]);
  }

  // What happens

  /** Parks it at each server, as its caller does. */
  void park() {
    if (!ServerWaiting.park(group, List.of(new StoreRequest(STORE, List.of(POSITION), List.of(servers))))) {
      wake();
    }
  }

  /** Asks a server, as its thread does. */
  void ask(int which) {
    try {
      Object answered = (Object) ASK.invokeExact(asker(which), true);
      assert answered != null;
    } catch (Throwable error) {
      throw new IllegalStateException(error);
    }
  }

  /** Has a server be led to other data, and say so. */
  void replace(int which) {
    synchronized (this) {
      replicas[which].isReplaced = true;
    }
    servers[which].reset();
    synchronized (this) {
      replicas[which].isReplaced = false;
      replicas[which].data++;
    }
  }

  /** Does what its caller does when he is woken, or the deadline has come. */
  void giveUp() {
    boolean wasWoken = wakings.get() > 0;
    ServerWaiting.giveUp(group);
    isOver = true;
    if (group.needs.stream().allMatch(PendingWait::isVisible)) {
      notePass();
    } else {
      isForgotten = wasWoken;
    }
  }

  /** Does what its caller does when it is cancelled. */
  void cancel() {
    group.cancelled = true;
    ServerWaiting.giveUp(group);
    isOver = true;
  }

  private synchronized void show(Replica replica) {
    replica.show();
    stood |= replicas[0].stands() && replicas[1].stands();
  }

  private synchronized void notePass() {
    neverStood |= !stood;
  }

  private void wake() {
    wakings.incrementAndGet();
    notePass();
  }

  // What has to hold

  /** Goes on as the servers' threads do, until all is said; returns what may never be, else {@link #STANDS}. */
  String judge() {
    for (int round = 0; round < ROUNDS; round++) {
      for (int which = 0; which < servers.length; which++) {
        if (servers[which].live() > 0) {
          ask(which);
        }
      }
    }
    if (!isOver && wakings.get() == 0) {
      return "sleeps on though all is there (NobodySleepsOn)";
    }
    if (wakings.get() > 1) {
      return "released twice (WokenOnce)";
    }
    for (int which = 0; which < servers.length; which++) {
      if (servers[which].live() != 0) {
        return "a server counts who waits, of none";
      }
      replace(which);
      if (servers[which].holds("e1", 5, Ticks.now())) {
        return "a proof outlives its generation";
      }
    }
    if (!isOver) {
      giveUp();
    }
    if (isForgotten) {
      return "released as a pass, which its caller does not see";
    }
    return neverStood ? "passed with proofs that never stood together (PassStood)" : STANDS;
  }
}
