package dev.antipode.rabbitmq;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.Optional;
import java.util.function.UnaryOperator;

/** A connection that stands for a plain one: the channels that it opens are wrapped. */
final class WrappedConnection implements InvocationHandler {
  private final Connection plain;
  private final UnaryOperator<Channel> wrap;

  private WrappedConnection(Connection plain, UnaryOperator<Channel> wrap) {
    this.plain = plain;
    this.wrap = wrap;
  }

  static Connection of(Connection plain, UnaryOperator<Channel> wrap) {
    return (Connection) Proxies.of(plain, Connection.class, new WrappedConnection(plain, wrap));
  }

  /** The connection behind a wrapped one; a plain one itself. */
  static Connection plainOf(Connection connection) {
    WrappedConnection behind = Proxies.handlerOf(connection, WrappedConnection.class);
    return behind == null ? connection : behind.plain;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
    if (method.getName().equals("equals")) {
      return proxy == args[0];
    }
    Object result = Proxies.call(plain, method, args);
    if (result instanceof Channel channel) {
      return wrap.apply(channel);
    }
    if (result instanceof Optional<?> opened && method.getName().equals("openChannel")) {
      return opened.map(channel -> wrap.apply((Channel) channel));
    }
    return result;
  }
}
