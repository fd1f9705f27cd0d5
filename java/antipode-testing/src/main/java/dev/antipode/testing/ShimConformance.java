package dev.antipode.testing;

import dev.antipode.shim.Capabilities;
import dev.antipode.testing.conformance.Case;
import dev.antipode.testing.conformance.ConformanceExtension;
import dev.antipode.testing.conformance.DoubtCases;
import dev.antipode.testing.conformance.FailoverCases;
import dev.antipode.testing.conformance.FaultCases;
import dev.antipode.testing.conformance.LinkCases;
import dev.antipode.testing.conformance.OwnReadCases;
import dev.antipode.testing.conformance.ReadCases;
import dev.antipode.testing.conformance.ServerCases;
import dev.antipode.testing.conformance.ValueCases;
import dev.antipode.testing.conformance.WaitingCases;
import dev.antipode.testing.conformance.WriterCases;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.extension.ExtendWith;
import org.opentest4j.TestAbortedException;

/**
 * The shim conformance kit: every case of the shim contract, on a shim's own store (SHIM-18, SHIM-33), with the same
 * names in all languages. A subclass says which store: {@link StoreUnderTest} says what it gives.
 */
@ExtendWith(ConformanceExtension.class)
public abstract class ShimConformance
    implements ValueCases,
        ReadCases,
        OwnReadCases,
        LinkCases,
        FailoverCases,
        WriterCases,
        DoubtCases,
        ServerCases,
        WaitingCases,
        FaultCases {
  private StoreUnderTest store;
  private Isolated isolated;
  private boolean begun;

  /** The cases of a subclass. */
  protected ShimConformance() {}

  /** The store; made anew for each case, or the same for all. */
  protected abstract StoreUnderTest underTest();

  @Override
  public final StoreUnderTest store() {
    return store;
  }

  @BeforeEach
  final void beginCase(TestInfo info) {
    store = underTest();
    Case about = info.getTestMethod().map(method -> method.getAnnotation(Case.class)).orElse(null);
    if (about == null) {
      return;
    }
    skipExcluded(about, store.capabilities());
    isolated = new Isolated();
    begun = true;
    store.begin();
  }

  private static void skipExcluded(Case about, Capabilities capable) {
    if (about.only().length > 0 && !Arrays.asList(about.only()).contains(capable.versions())) {
      throw new TestAbortedException("not for versions=" + capable.versions().word());
    }
    if (!about.queues() && capable.tap()) {
      throw new TestAbortedException("not for queues: messages are not overwritten, deleted or read again");
    }
  }

  @AfterEach
  final void endCase(TestInfo info) {
    if (!begun) {
      return;
    }
    try {
      store.recover(info.getTestMethod().map(method -> method.getAnnotation(Case.class).spoils()).orElse(true));
    } finally {
      isolated.close();
    }
  }

  /** Each listed exception is a case, with a reason. */
  @org.junit.jupiter.api.Test
  void exceptionsAreCases() {
    Set<String> cases = Arrays.stream(getClass().getMethods())
        .filter(method -> method.isAnnotationPresent(Case.class))
        .map(ConformanceExtension::nameOf)
        .collect(Collectors.toSet());
    store.exceptions().forEach((name, reason) -> {
      if (!cases.contains(name)) {
        throw new AssertionError("the exception " + name + " is no case");
      }
      if (reason.isBlank()) {
        throw new AssertionError("the exception " + name + " has no reason");
      }
    });
  }
}
