package dev.antipode.testing.conformance;

import java.lang.reflect.Method;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.opentest4j.TestAbortedException;

/** Turns a listed case that fails into one that is left out with its reason, and fails one that passes (SHIM-33). */
public final class ConformanceExtension implements InvocationInterceptor {
  /** An extension. */
  public ConformanceExtension() {}

  /** A case's name in lists and on pages: {@code openTransaction} is {@code open_transaction}. */
  public static String nameOf(Method method) {
    return method.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
  }

  @Override
  public void interceptTestMethod(
      Invocation<Void> invocation, ReflectiveInvocationContext<Method> context, ExtensionContext extension)
      throws Throwable {
    Map<String, String> exceptions =
        context.getTarget().map(target -> ((ConformanceCases) target).store().exceptions()).orElse(Map.of());
    String name = nameOf(context.getExecutable());
    String reason = exceptions.get(name);
    if (reason == null) {
      invocation.proceed();
      return;
    }
    try {
      invocation.proceed();
    } catch (TestAbortedException skipped) {
      throw skipped;
    } catch (Throwable failed) {
      throw new TestAbortedException("listed: " + reason, failed);
    }
    throw new AssertionError("the case " + name + " is listed among the exceptions, and passes: take it off the list");
  }
}
