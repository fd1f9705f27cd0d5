package dev.antipode.internal.base;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.util.Collections;
import java.util.Iterator;

/**
 * What this library needs of OpenTelemetry's API and older versions lack: those from 1.49 on serve, which Spring Boot 3.5
 * pins.
 */
public final class AnyOpenTelemetry {
  private static final MethodHandle GLOBAL = global(MethodHandles.lookup());
  private static final MethodHandle GET_ALL = getAll(MethodHandles.lookup());

  private AnyOpenTelemetry() {}

  private static MethodHandle global(MethodHandles.Lookup lookup) {
    MethodType type = MethodType.methodType(OpenTelemetry.class);
    try {
      return lookup.findStatic(GlobalOpenTelemetry.class, "getOrNoop", type);
    } catch (ReflectiveOperationException older) {
      // Its `get` would set a global one that does nothing, and keep the application from setting its own.
    }
    try {
      Field field = GlobalOpenTelemetry.class.getDeclaredField("globalOpenTelemetry");
      field.setAccessible(true);
      return lookup.unreflectGetter(field).asType(type);
    } catch (ReflectiveOperationException | RuntimeException unknown) {
      return MethodHandles.constant(OpenTelemetry.class, null);
    }
  }

  private static MethodHandle getAll(MethodHandles.Lookup lookup) {
    MethodType type = MethodType.methodType(Iterator.class, Object.class, String.class);
    try {
      return lookup.findVirtual(TextMapGetter.class, "getAll", type);
    } catch (ReflectiveOperationException older) {
      return null;
    }
  }

  /** The global OpenTelemetry, or one that does nothing. Asking does not keep the application from setting it later. */
  public static OpenTelemetry global() {
    try {
      OpenTelemetry found = (OpenTelemetry) GLOBAL.invokeExact();
      return found == null ? OpenTelemetry.noop() : found;
    } catch (Throwable e) { // what it is declared with; neither a getter nor a field throws
      throw new IllegalStateException(e);
    }
  }

  /** All values of a name, of which older versions see the first alone. */
  @SuppressWarnings("unchecked") // it is an Iterator<String>
  public static <C> Iterator<String> values(TextMapGetter<C> getter, C carrier, String name) {
    if (GET_ALL == null) {
      String value = getter.get(carrier, name);
      return value == null ? Collections.emptyIterator() : Collections.singleton(value).iterator();
    }
    try {
      return (Iterator<String>) GET_ALL.invoke(getter, carrier, name);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) { // what it is declared with
      throw new IllegalStateException(e);
    }
  }
}
