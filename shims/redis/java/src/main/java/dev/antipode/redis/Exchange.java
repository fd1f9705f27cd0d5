package dev.antipode.redis;

import dev.antipode.propagation.AtRest;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/** One command on one connection: a write with the question behind it, or a read that waits (SHIM-6, SHIM-13). */
final class Exchange {
  private Exchange() {}

  /** A command on its way to its connection, with what it has to do besides. */
  static final class Recorded<T> extends CommandObject<T> {
    private final CommandObject<T> plain;
    private final WriteCall write;
    private final ReadCall read;

    Recorded(CommandObject<T> plain, WriteCall write, ReadCall read) {
      super(plain.getArguments(), plain.getBuilder());
      this.plain = plain;
      this.write = write;
      this.read = read;
    }

    // Equal by what it sends alone, as Jedis has it: what it has to do besides is no part of that.
    @Override
    public boolean equals(Object other) {
      return super.equals(other);
    }

    @Override
    public int hashCode() {
      return super.hashCode();
    }
  }

  /** Executes one attempt on this connection. */
  static <T> T execute(Binding binding, Connection connection, CommandObject<T> command, boolean multi) {
    if (!(command instanceof Recorded<T> recorded)) {
      return connection.executeCommand(command);
    }
    CommandArguments arguments = command.getArguments();
    if (recorded.write != null && Commands.name(arguments).equals("HIMPORT")) {
      return writeApart(connection, recorded);
    }
    Object raw;
    if (recorded.write != null) {
      raw = write(binding, connection, arguments, recorded.write);
    } else if (recorded.read != null) {
      raw = Reads.read(binding, connection, recorded.read, arguments, multi);
    } else {
      connection.sendCommand(FieldRest.wireRead(arguments));
      raw = connection.getOne();
    }
    if (raw instanceof JedisDataException error) {
      throw error;
    }
    if (binding.rests() && FieldRest.reads(arguments)) {
      raw = FieldRest.hide(arguments, raw).reply();
    }
    return recorded.getBuilder().build(raw);
  }

  /** A write with the question behind it: one packet, two replies. */
  private static Object write(Binding binding, Connection connection, CommandArguments command, WriteCall call) {
    CommandArguments wire = wire(binding, command, call);
    boolean asks = call.begins();
    Object raw;
    try {
      connection.sendCommand(wire);
      if (asks) {
        connection.sendCommand(Reads.question());
      }
      raw = one(connection, command.isBlocking());
      if (asks) {
        call.answered(hear(connection));
      }
    } catch (RuntimeException | Error error) {
      call.broke();
      throw error;
    }
    if (raw instanceof JedisDataException error) {
      throw error;
    }
    call.done(raw);
    return raw;
  }

  /** Where Jedis sends more than the command: the question comes in a packet of its own. */
  private static <T> T writeApart(Connection connection, Recorded<T> recorded) {
    boolean asks = recorded.write.begins();
    T value;
    try {
      value = connection.executeCommand(recorded.plain);
    } catch (JedisConnectionException error) {
      recorded.write.broke();
      throw error;
    }
    if (asks) {
      recorded.write.answered(ask(connection));
    }
    recorded.write.done(value);
    return value;
  }

  /** A command as it is sent: where a lineage rests beside what it writes, with the scope's. */
  static CommandArguments wire(Binding binding, CommandArguments command, WriteCall call) {
    if (!binding.rests() || !FieldRest.writes(command)) {
      return command;
    }
    return FieldRest.wireWrite(command, AtRest.text(call.lineageBeside(), binding.options().lineageOut()));
  }

  /** One reply; an error reply is a value. */
  static Object one(Connection connection, boolean blocking) {
    if (blocking) {
      connection.setTimeoutInfinite();
    }
    try {
      return connection.getOne();
    } catch (JedisDataException error) {
      return error;
    } finally {
      if (blocking) {
        connection.rollbackTimeout();
      }
    }
  }

  /** The answer to the question behind a write. Its failure never reaches the application (SHIM-2). */
  static Object hear(Connection connection) {
    try {
      return one(connection, false);
    } catch (JedisException error) {
      return null; // Jedis has marked the connection as broken
    }
  }

  /** Asks for the position in a packet of its own. */
  static Object ask(Connection connection) {
    try {
      connection.sendCommand(Reads.question());
    } catch (JedisException error) {
      return null;
    }
    return hear(connection);
  }
}
