package dev.antipode.memory;

import dev.antipode.shim.Server;
import dev.antipode.shim.Watch;

/** A live push channel to one server of the embedded store. */
final class MemoryWatch implements Watch {
  private final Target target;
  private final Server server;

  MemoryWatch(Target target, Server server) {
    this.target = target;
    this.server = server;
  }

  /** Something was applied there. */
  void changed() {
    server.changed();
  }

  /** The server has started again, perhaps with less than it had: what it proved before holds no more. */
  void replaced() {
    server.reset();
    server.changed();
  }

  @Override
  public void close() {
    target.log().unwatch(target.node(), this);
  }
}
