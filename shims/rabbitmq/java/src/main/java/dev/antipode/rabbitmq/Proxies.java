package dev.antipode.rabbitmq;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Set;

/** Objects that stand for another one, with all the public interfaces that it has. */
final class Proxies {
  private Proxies() {}

  /** A stand-in for {@code plain}, whose calls the handler gets. */
  static Object of(Object plain, Class<?> least, InvocationHandler handler) {
    ClassLoader loader = Proxies.class.getClassLoader();
    Set<Class<?>> interfaces = new LinkedHashSet<>(Set.of(least));
    for (Class<?> each = plain.getClass(); each != null; each = each.getSuperclass()) {
      for (Class<?> candidate : each.getInterfaces()) {
        if (Modifier.isPublic(candidate.getModifiers()) && isSeenBy(loader, candidate)) {
          interfaces.add(candidate);
        }
      }
    }
    return Proxy.newProxyInstance(loader, interfaces.toArray(new Class<?>[0]), handler);
  }

  private static boolean isSeenBy(ClassLoader loader, Class<?> candidate) {
    try {
      return Class.forName(candidate.getName(), false, loader) == candidate;
    } catch (ClassNotFoundException error) {
      return false;
    }
  }

  /** The handler of this kind behind a stand-in; null for anything else. */
  static <T extends InvocationHandler> T handlerOf(Object proxy, Class<T> kind) {
    if (proxy == null || !Proxy.isProxyClass(proxy.getClass())) {
      return null;
    }
    InvocationHandler handler = Proxy.getInvocationHandler(proxy);
    return kind.isInstance(handler) ? kind.cast(handler) : null;
  }

  /** Calls the plain object; what it throws is thrown as it is. */
  static Object call(Object plain, Method method, Object[] args) throws Throwable {
    try {
      return method.invoke(plain, args);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
