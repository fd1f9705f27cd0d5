package dev.antipode.memory;

import dev.antipode.Key;
import dev.antipode.Ordered;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Write;
import dev.antipode.testing.ShimConformance;
import dev.antipode.testing.StoreUnderTest;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiPredicate;
import java.util.function.Supplier;

/** Shims with one defect each: the kit has to catch every one. They are run by {@link ConformanceFailsTest} alone. */
final class BrokenShims {
  private BrokenShims() {}

  /** A shim of positions that judges in its own way, and takes no account of anything else. */
  private static Supplier<Shim> positions(BiPredicate<Node, WriteId> judge) {
    return () -> new MemoryShim.Positions() {
      @Override
      void proved(Node node, Server server) {}

      @Override
      Visibility judge(Node node, WriteId id) {
        return judge.test(node, id) ? Visibility.VISIBLE : Visibility.NOT_YET;
      }
    };
  }

  /** A false pass has all the time that it needs to show, on a busy machine, too. */
  private static class Patient extends MemoryUnderTest {
    Patient(Versions versions) {
      super(versions);
    }

    Patient(Versions versions, Supplier<? extends Shim> shim) {
      super(versions, shim);
    }

    @Override
    public Duration brief() {
      return Duration.ofSeconds(2);
    }
  }

  static class Sound extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new MemoryUnderTest(Versions.POSITION);
    }
  }

  static class PassesAlways extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new Patient(Versions.POSITION, positions((node, id) -> true));
    }
  }

  static class IgnoresEpochs extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new Patient(
          Versions.POSITION, positions((node, id) -> ((Ordered) id.version()).compareCounter(node.counter) <= 0));
    }
  }

  static class ComparesKeysOnly extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new Patient(Versions.OBJECT, () -> new MemoryShim.Objects() {
        @Override
        Visibility judge(Node node, WriteId id) {
          return node.cell(id.key()) != null ? Visibility.VISIBLE : Visibility.NOT_YET;
        }
      });
    }
  }

  /** An error from the client is taken for a write that did not happen. */
  static class ForgetsPending extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new Patient(Versions.POSITION) {
        @Override
        public void writeWithUnknownOutcome(String key, String value) {
          memory.loseNextAnswer();
          try (Write write = registered().begin()) {
            try {
              memory.put(key, value);
            } catch (UncheckedIOException broken) {
              write.abandon();
              throw broken;
            }
          }
        }
      };
    }
  }

  /** Each object counts from 1, and from 1 again when it has been deleted. */
  static class RepeatsVersions extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      Map<String, Long> counters = new ConcurrentHashMap<>();
      return new Patient(Versions.OBJECT) {
        @Override
        public void write(String key, String value) {
          try (Write write = registered().begin(Key.of(key))) {
            memory.put(key, value);
            write.record(new Ordered("", counters.merge(key, 1L, Long::sum)));
          }
        }

        @Override
        public void delete(String key) {
          super.delete(key);
          counters.remove(key);
        }
      };
    }
  }

  /** A read tells nothing of the value that it read. */
  static class CoversNothingRead extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new Patient(Versions.POSITION) {
        @Override
        public String read(String key, String at) {
          return look(key, at);
        }
      };
    }
  }

  /** A case is listed that passes, and one that there is not. */
  static class HasStaleExceptions extends ShimConformance {
    @Override
    protected StoreUnderTest underTest() {
      return new Patient(Versions.POSITION) {
        @Override
        public Map<String, String> exceptions() {
          return Map.of("write", "it cannot", "no_such_case", "it cannot");
        }
      };
    }
  }
}
