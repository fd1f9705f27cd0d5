package dev.antipode.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.LineageScope;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.testing.Isolated;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** Monkey mode under jqwik: what it chooses is legal, and a test that fails shrinks to one stale read (spec MONKEY). */
class MonkeyPropertiesTest {
  private static final BarrierOptions PATIENT = BarrierOptions.defaults().timeout(Duration.ofSeconds(20));

  /** One request and its follower, of which the second forgot the barrier or not. */
  static final class Services {
    private final List<String> stale = new ArrayList<>();

    private static String publish(MemoryClient posts) {
      try (LineageScope scope = Antipode.scope()) {
        posts.set("acl:42", "friends");
        posts.set("post:42", "draft");
        posts.set("post:42", "hi");
        return Antipode.serialize();
      }
    }

    private static String follow(MemoryClient posts, String message, boolean waits) {
      try (LineageScope scope = Antipode.messageScope(message)) {
        if (waits) {
          Antipode.barrier(PATIENT);
        }
        posts.get("acl:42");
        posts.get("post:41");
        return posts.get("post:42");
      }
    }

    void run(List<Integer> behind, boolean waits) {
      StaleChoice numbers = StaleChoice.of(behind);
      try (Isolated isolated = new Isolated()) {
        MemoryStore store = MemoryStore.named("blog-posts").monkey(read -> {
          int chosen = numbers.behind(read);
          if (chosen > 0) {
            stale.add(read.key().text() + " " + chosen + " behind");
          }
          return chosen;
        });
        MemoryClient a = store.client("a");
        MemoryClient b = store.client("b");
        for (int time = 0; time < 3; time++) {
          assertThat(follow(b, publish(a), waits)).as("stale reads: %s", stale).isEqualTo("hi");
        }
      }
    }
  }

  /** Runs by the test below; its name is none that the build runs by itself. */
  static class Unprotected {
    @Property(tries = 200, seed = "1", shrinking = ShrinkingMode.FULL)
    void isNeverStale(@ForAll @Size(max = 20) List<@IntRange(min = 0, max = 3) Integer> behind) {
      new Services().run(behind, false);
    }
  }

  /** MONKEY-3, MONKEY-7. */
  @Example
  void withoutABarrierItFailsAndShrinksToOneStaleRead() {
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create().execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectClass(Unprotected.class))
            .build(),
        listener);
    assertThat(listener.getSummary().getFailures()).hasSize(1);
    assertThat(listener.getSummary().getFailures().get(0).getException())
        .hasMessageContaining("stale reads: [post:42 1 behind]");
  }

  /** MONKEY-5. */
  @Property(tries = 100)
  void withTheBarrierItNeverFails(@ForAll @Size(max = 20) List<@IntRange(min = 0, max = 3) Integer> behind) {
    new Services().run(behind, true);
  }

  /** What happens to the store, and the choices of its reads. */
  enum Step {
    SET_K, SET_L, DELETE_K, DELETE_L, READ_K_AT_B, READ_L_AT_B, READ_K_AT_C, READ_L_AT_C, LINK_OF_B, LINK_OF_C, WAIT
  }

  /** MONKEY-2, MONKEY-3, MONKEY-5: against the list of every state that there was. */
  @Property(tries = 150)
  void whatIsReadIsAlwaysLegal(
      @ForAll Versions versions,
      @ForAll @Size(max = 40) List<Step> steps,
      @ForAll @Size(max = 40) List<@IntRange(min = 0, max = 5) Integer> behind) {
    try (Isolated isolated = new Isolated(); LineageScope scope = Antipode.scope()) {
      MemoryStore store =
          MemoryStore.named("s").regions("a", "b", "c").versions(versions).monkey(StaleChoice.of(behind));
      Map<String, MemoryClient> clients = new HashMap<>();
      List.of("a", "b", "c").forEach(region -> clients.put(region, store.client(region)));
      List<Map<String, String>> states = new ArrayList<>(List.of(Map.of()));
      Map<String, Integer> least = new HashMap<>(Map.of("b", 0, "c", 0));
      List<String> frozen = new ArrayList<>();
      for (Step step : steps) {
        String key = step.name().contains("_K") ? "k" : "l";
        String region = step.name().endsWith("B") ? "b" : "c";
        Map<String, String> state = new HashMap<>(states.get(states.size() - 1));
        switch (step) {
          case SET_K, SET_L -> {
            String value = String.valueOf(states.size());
            clients.get("a").set(key, value);
            state.put(key, value);
            states.add(state);
          }
          case DELETE_K, DELETE_L -> {
            clients.get("a").delete(key);
            state.remove(key);
            states.add(state);
          }
          case LINK_OF_B, LINK_OF_C -> {
            if (frozen.remove(region)) {
              store.heal(region);
            } else {
              frozen.add(region);
              store.freeze(region);
            }
          }
          case WAIT -> {
            if (frozen.isEmpty() && versions != Versions.OPAQUE) { // what was overwritten there proves nothing
              assertThat(Antipode.barrier(PATIENT).satisfied()).isTrue();
              least.replaceAll((each, place) -> states.size() - 1);
            }
          }
          default -> {
            String value = clients.get(region).get(key);
            int place = least.get(region);
            while (place < states.size() && !Objects.equals(states.get(place).get(key), value)) {
              place++;
            }
            assertThat(place).as("%s in %s was %s before what the replica has shown", key, region, value)
                .isLessThan(states.size());
            least.put(region, place);
          }
        }
      }
    }
  }
}
