package dev.antipode.spring;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.stream.Stream;
import org.springframework.util.ClassUtils;

/** Stand-ins for objects of Spring's, with all of their public interfaces. */
final class StandIns {
  private StandIns() {}

  /** A method of what is stood for, with its arguments. */
  @FunctionalInterface
  interface Call {
    Object run() throws Throwable;
  }

  /** What is done with each call. */
  @FunctionalInterface
  interface Handler {
    Object handle(Method method, Object[] arguments, Call call) throws Throwable;
  }

  /** Stands for an object; it has these interfaces, too, whose methods are the handler's alone. */
  static Object of(Object plain, Handler handler, Class<?>... more) {
    Class<?>[] interfaces = Stream.concat(
            Arrays.stream(ClassUtils.getAllInterfaces(plain)).filter(each -> Modifier.isPublic(each.getModifiers())),
            Arrays.stream(more))
        .distinct().toArray(Class<?>[]::new);
    ClassLoader loader = more.length == 0 ? plain.getClass().getClassLoader() : StandIns.class.getClassLoader();
    return Proxy.newProxyInstance(loader, interfaces, (proxy, method, args) -> {
      if (method.getName().equals("equals") && args != null && args.length == 1) {
        return proxy == args[0];
      }
      return handler.handle(method, args, () -> {
        try {
          return method.invoke(plain, args);
        } catch (InvocationTargetException error) {
          throw error.getCause();
        }
      });
    });
  }
}
