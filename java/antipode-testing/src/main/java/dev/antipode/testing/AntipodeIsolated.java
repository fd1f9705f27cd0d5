package dev.antipode.testing;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A JUnit extension: each test has a registry, settings and counts of its own. {@code @ExtendWith(AntipodeIsolated.class)} */
public final class AntipodeIsolated implements BeforeEachCallback, AfterEachCallback {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(AntipodeIsolated.class);

  /** An extension. */
  public AntipodeIsolated() {}

  @Override
  public void beforeEach(ExtensionContext context) {
    context.getStore(NAMESPACE).put(Isolated.class, new Isolated());
  }

  @Override
  public void afterEach(ExtensionContext context) {
    Isolated isolated = context.getStore(NAMESPACE).remove(Isolated.class, Isolated.class);
    if (isolated != null) {
      isolated.close();
    }
  }
}
