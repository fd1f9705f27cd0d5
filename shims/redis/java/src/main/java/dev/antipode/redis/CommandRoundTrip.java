package dev.antipode.redis;

import java.util.List;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/** One command on one connection: a write with the question behind it, or a read that waits (SHIM-6, SHIM-13). */
final class CommandRoundTrip {
  private CommandRoundTrip() {}

  /** A command on its way to its connection, with what it has to do besides. */
  static final class RecordedCommand<T> extends CommandObject<T> {
    private final CommandObject<T> plain;
    private final WriteCall write;
    private final ReadCall read;

    RecordedCommand(CommandObject<T> plain, WriteCall write, ReadCall read) {
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
    if (!(command instanceof RecordedCommand<T> recorded)) {
      return connection.executeCommand(command);
    }
    CommandArguments arguments = command.getArguments();
    CommandWords words = new JedisWords(arguments);
    if (recorded.write != null && Commands.name(words).equals("HIMPORT")) {
      waitFirst(binding, connection, recorded.read, multi);
      return writeApart(connection, recorded);
    }
    Object raw;
    if (recorded.write != null) {
      waitFirst(binding, connection, recorded.read, multi);
      raw = write(binding, connection, arguments, recorded.write);
    } else if (recorded.read != null && recorded.read.asks()) {
      raw = Reads.read(binding, connection, recorded.read, arguments, multi);
    } else {
      connection.sendCommand(JedisWords.arguments(binding.beside().wire(words, null)));
      raw = shown(binding, null, words, one(connection, arguments.isBlocking()));
    }
    if (raw instanceof JedisDataException error) {
      throw error;
    }
    if (recorded.read != null) {
      recorded.read.answered(words, raw);
    }
    return recorded.getBuilder().build(raw);
  }

  /** What may write and may read is not sent where it has waited in vain, unless the policies let it go on (SHIM-44). */
  private static void waitFirst(Binding binding, Connection connection, ReadCall read, boolean multi) {
    if (read != null) {
      Reads.waitOn(binding, connection, read, multi);
      read.finish();
    }
  }

  /** A write with the question behind it: one packet, two replies. */
  private static Object write(Binding binding, Connection connection, CommandArguments command, WriteCall call) {
    CommandWords words = new JedisWords(command);
    CommandArguments wire = JedisWords.arguments(binding.beside().wire(words, call));
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
    Object shown = shownByWrite(binding, call, words, raw);
    call.says(words, raw);
    call.done(raw);
    return shown;
  }

  /** Where Jedis sends more than the command: the question comes in a packet of its own. */
  private static <T> T writeApart(Connection connection, RecordedCommand<T> recorded) {
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

  /** A reply as the application gets it; what rested beside it goes to who collects that, if anybody does. */
  static Object shown(Binding binding, ReadCall read, CommandWords command, Object reply) {
    LineagePlacement beside = binding.beside();
    if (reply instanceof JedisDataException || !beside.answers(command)) {
      return reply;
    }
    LineagePlacement.VisibleReply shown = beside.shown(command, reply);
    if (read != null) {
      read.sawBeside(shown.lineage());
    }
    return shown.reply();
  }

  /** The same for a command that writes, too. */
  static Object shownByWrite(Binding binding, WriteCall write, CommandWords command, Object reply) {
    LineagePlacement beside = binding.beside();
    if (reply instanceof JedisDataException || !beside.answers(command)) {
      return reply;
    }
    LineagePlacement.VisibleReply shown = beside.shown(command, reply);
    if (write != null) {
      write.sawBeside(shown.lineage());
    }
    return shown.reply();
  }

  /** Replies with errors of Jedis in the form that our own connections have, too. */
  static List<?> withServerErrors(List<?> replies) {
    return replies.stream().map(CommandRoundTrip::answer).toList();
  }

  private static Object answer(Object reply) {
    return reply instanceof JedisDataException error ? new ServerError(String.valueOf(error.getMessage())) : reply;
  }

  /** The client throws this to the application. */
  static void failed(WriteCall call, Throwable error) {
    if (error instanceof JedisDataException) {
      call.refused(error.getMessage());
    } else {
      call.failed();
    }
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
      return answer(one(connection, false));
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
