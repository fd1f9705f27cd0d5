package dev.antipode.postgresql;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.sql.Wrapper;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import org.postgresql.core.BaseConnection;

/** Stand-ins for the client's objects: they have every public interface of what they stand for. */
final class Proxies {
  /** What a stand-in of ours knows about itself. */
  interface StandIn {
    /** What it stands for. */
    Object antipodePlain();
  }

  /** A handler that looks at some methods, and hands the others on. */
  abstract static class Handler implements InvocationHandler {
    private final Object plain;

    Handler(Object plain) {
      this.plain = plain;
    }

    /** What a method does; by default what it does at what is stood for. */
    abstract Object call(Object proxy, Method method, Object[] args) throws Throwable;

    final Object plainly(Method method, Object[] args) throws Throwable {
      try {
        return method.invoke(plain, args);
      } catch (InvocationTargetException thrown) {
        throw thrown.getCause();
      }
    }

    @Override
    public final Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
      switch (method.getName()) {
        case "equals":
          return args.length == 1 && proxy == args[0];
        case "hashCode":
          return System.identityHashCode(proxy);
        case "antipodePlain":
          return plain;
        case "isWrapperFor":
          return ((Class<?>) args[0]).isInstance(proxy) || (Boolean) plainly(method, args);
        case "unwrap":
          return unwrapped(proxy, (Class<?>) args[0], method, args);
        default:
          return call(proxy, method, args);
      }
    }

    /** What {@code unwrap} gives. */
    Object unwrapped(Object proxy, Class<?> wanted, Method method, Object[] args) throws Throwable {
      if (wanted.isInstance(proxy)) {
        return proxy;
      }
      return wanted.isInstance(plain) ? plain : inside(wanted, method, args);
    }

    /** What is deeper inside. */
    Object inside(Class<?> wanted, Method method, Object[] args) throws Throwable {
      return plainly(method, args);
    }
  }

  private Proxies() {}

  private static final ClassValue<Class<?>[]> INTERFACES = new ClassValue<>() {
    @Override
    protected Class<?>[] computeValue(Class<?> plain) {
      return interfacesOf(plain);
    }
  };

  /** A stand-in with all public interfaces of {@code plain}, of which {@code type} is one. */
  static <T> T of(Class<T> type, Object plain, Handler handler) {
    Class<?>[] interfaces = INTERFACES.get(plain.getClass());
    return type.cast(Proxy.newProxyInstance(Proxies.class.getClassLoader(), interfaces, handler));
  }

  private static Class<?>[] interfacesOf(Class<?> plain) {
    Set<Class<?>> all = new LinkedHashSet<>();
    for (Class<?> type = plain; type != null; type = type.getSuperclass()) {
      Arrays.stream(type.getInterfaces()).filter(each -> Modifier.isPublic(each.getModifiers())).forEach(all::add);
    }
    ClassLoader loader = Proxies.class.getClassLoader();
    all.removeIf(each -> !isSeenBy(loader, each));
    all.add(StandIn.class);
    return all.toArray(Class<?>[]::new);
  }

  private static boolean isSeenBy(ClassLoader loader, Class<?> type) {
    try {
      return Class.forName(type.getName(), false, loader) == type;
    } catch (ClassNotFoundException error) {
      return false;
    }
  }

  /** What a stand-in of ours stands for; anything else itself. */
  static Object plain(Object what) {
    return what instanceof StandIn recording ? recording.antipodePlain() : what;
  }

  /** The driver's own connection inside one; null where it is none, or closed. */
  static BaseConnection physical(Wrapper connection) {
    return (BaseConnection) plain(inside(connection, BaseConnection.class));
  }

  /** What a client's object is inside, or null where it is nothing of that type. */
  static <T> T inside(Wrapper wrapper, Class<T> type) {
    try {
      return wrapper.isWrapperFor(type) ? wrapper.unwrap(type) : null;
    } catch (java.sql.SQLException error) {
      return null;
    }
  }
}
