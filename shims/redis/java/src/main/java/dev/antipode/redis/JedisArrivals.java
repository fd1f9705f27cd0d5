package dev.antipode.redis;

import dev.antipode.shim.Logs;
import dev.antipode.shim.MetConnections;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Map;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.providers.ConnectionProvider;

/**
 * A client's connections. The server that one has really reached joins the store before it is handed out (BAR-52): its name, or
 * a mapper of the application's, may lead elsewhere than it did when the client was wrapped. Those that its pool holds are looked
 * at before (BAR-68).
 */
final class JedisArrivals implements ConnectionProvider {
  private final ConnectionProvider plain;
  private final Binding binding;
  private final MetConnections met = new MetConnections(socket -> join((Socket) socket));

  JedisArrivals(ConnectionProvider plain, Binding binding) {
    this.plain = plain;
    this.binding = binding;
  }

  @Override
  public Connection getConnection() {
    return arrived(plain.getConnection());
  }

  @Override
  public Connection getConnection(CommandArguments arguments) {
    return arrived(plain.getConnection(arguments));
  }

  private Connection arrived(Connection connection) {
    Socket socket = JedisTargets.socket(connection);
    if (socket != null) {
      try {
        met.meet(socket);
      } catch (RuntimeException error) { // the application's command goes on
        Logs.error("AP501", "the server that a connection reached could not join its store", error);
      }
    }
    return connection;
  }

  /** Let the servers join to which the connections lead that the pool holds, whoever opened them. */
  void meetHeld() {
    met.meetAll(JedisTargets.sockets(plain));
  }

  private void join(Socket socket) {
    if (!(socket.getRemoteSocketAddress() instanceof InetSocketAddress remote) || remote.isUnresolved()) {
      return;
    }
    Target server = JedisTargets.reachedBy(plain, binding.target(), socket, remote);
    if (server != null && JedisTargets.leadsPlainly(plain)) {
      binding.store().reach(binding.options(), server, socket, made -> !((Socket) made).isClosed());
    } else if (server != null) { // the application's own code may lead there again (BAR-62)
      binding.store().useServer(binding.options(), server, server.address());
    }
  }

  @Override
  public Map<?, ?> getConnectionMap() {
    return plain.getConnectionMap();
  }

  @Override
  public Map<?, ?> getPrimaryNodesConnectionMap() {
    return plain.getPrimaryNodesConnectionMap();
  }

  @Override
  public void close() throws Exception {
    plain.close();
  }
}
