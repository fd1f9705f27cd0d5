package dev.antipode.observer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.Antipode;
import dev.antipode.Key;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Observed;
import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import dev.antipode.testing.AntipodeIsolated;
import dev.antipode.testing.CapturedLogs;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** The observer port: who is added takes the events that it overrides, beside those who were there before. */
@ExtendWith(AntipodeIsolated.class)
class ObserversTest {
  /** Keeps two kinds of events, and how the writes to one store end. */
  private static final class Listener implements Observer {
    private final List<String> heard = new ArrayList<>();
    private final List<String> ended = new ArrayList<>();

    @Override
    public void onWriteLost(String reason, String store, String site) {
      heard.add(reason + " " + store);
    }

    @Override
    public void onLineageIncomplete(String reason, String store, ObservedScope scope, boolean isRecorded) {
      heard.add(reason + " " + store);
    }

    @Override
    public WriteObserver observeWrite(ObservedScope scope, ObservedStore store, Lineage lineage) {
      return store.name().equals("posts") ? new Ending() : null;
    }

    private final class Ending implements WriteObserver {
      @Override
      public void changes(List<KeyChange> keys) {}

      @Override
      public void done(WriteId id, Key key) {
        ended.add(id.store() + " " + key.text());
      }

      @Override
      public void unknown(Key key) {
        ended.add("unknown");
      }

      @Override
      public void notDone() {
        ended.add("not done");
      }

      @Override
      public void untold(RuntimeException error) {}
    }
  }

  private final Listener listener = new Listener();

  @BeforeEach
  void add() {
    Observers.add(listener);
  }

  @AfterEach
  void remove() {
    Observers.remove(listener);
  }

  @Test
  void anObserverTakesWhatItOverrides() {
    Antipode.append(new WriteId("posts", "k", new Ordered("e", 1)));
    try (LineageScope scope = Antipode.scope()) {
      scope.markIncomplete("stream", "it ended", "posts");
    }
    Observers.events().onFallback("run");
    assertThat(listener.heard).containsExactly("orphan posts", "stream posts");
  }

  @Test
  void whoIsAddedTakesNothingFromTheOthers() {
    try (Observed observed = new Observed()) {
      Observers.events().onWriteLost("orphan", "", "app/App.java:1");
      assertThat(observed.count("antipode.write.lost", Map.of("reason", "orphan"))).isEqualTo(1);
    }
    assertThat(listener.heard).containsExactly("orphan ");
  }

  /** An observer that wants a write is told what becomes of it, and nothing of the ones that it does not want. */
  @Test
  void whoWantsAWriteIsToldItsEnd() {
    MemoryClient client = MemoryStore.named("posts").client("a");
    MemoryStore.named("likes").client("a").set("k", "v");
    client.set("k", "v");
    assertThat(listener.ended).containsExactly("posts k");
  }

  /** Listens to nothing; a jar names it. */
  public static final class Named implements Observer {
    /** Make one, as ServiceLoader does. */
    public Named() {}
  }

  @Test
  void anObserverThatCannotBeLoadedIsLeftOut(@TempDir Path jar) throws IOException {
    Path names = jar.resolve("META-INF/services").resolve(Observer.class.getName());
    Files.createDirectories(names.getParent());
    Files.write(names, List.of("app.Missing", Named.class.getName()));
    ClassLoader parent = Observer.class.getClassLoader();
    try (URLClassLoader loader = new URLClassLoader(new URL[] {jar.toUri().toURL()}, parent);
        CapturedLogs logs = new CapturedLogs()) {
      List<Observer> found = Observers.found(loader);
      assertThat(found).hasSize(Observers.found(parent).size() + 1).hasAtLeastOneElementOfType(Named.class);
      assertThat(logs.lines()).containsExactly("an observer cannot be loaded [AP601]");
    }
  }

  @Test
  void whoIsRemovedHearsNothing() {
    Observers.remove(listener);
    Observers.events().onWriteLost("orphan", "posts", "app/App.java:1");
    assertThat(listener.heard).isEmpty();
  }

  /** No observer may need an event that another one does not override. */
  @Test
  void anEventOfNobodyDoesNothing() {
    Observer nobody = new Observer() {};
    nobody.onServerAsked("posts", "wait");
    nobody.onBarrierWaited(null);
    assertThat(nobody.wantsBarrierSites()).isFalse();
  }
}
