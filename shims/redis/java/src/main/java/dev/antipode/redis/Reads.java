package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.Verdict;
import dev.antipode.barrier.ServerWait;
import dev.antipode.propagation.AtRest;
import dev.antipode.shim.Visibility;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;

/** Reads that wait, or that say what they depend on: the question and the read in one atomic step on one connection. */
final class Reads {
  private static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LAST_PAUSE = TimeUnit.MILLISECONDS.toNanos(50);
  private static final int AGAIN = 3;

  private final Binding binding;
  private final Connection connection;
  private final ReadCall call;
  private long pause = FIRST_PAUSE;

  private Reads(Binding binding, Connection connection, ReadCall call) {
    this.binding = binding;
    this.connection = connection;
    this.call = call;
  }

  /** {@code INFO replication}. */
  static CommandArguments question() {
    return new CommandArguments(Protocol.Command.INFO).add("replication");
  }

  /** Waits on this connection, with nothing but questions: before a pipeline, or a read that blocks. */
  static void waitOn(Binding binding, Connection connection, ReadCall call, boolean multi) {
    new Reads(binding, connection, call).waitFirst(multi);
  }

  /**
   * Reads, waits and reads again; returns the reply as it came.
   *
   * @param multi whether the read may stand in a MULTI, where nothing comes between it and the question; where it may
   *     not, the question follows it in the same packet
   */
  static Object read(
      Binding binding, Connection connection, ReadCall call, CommandArguments command, boolean multi) {
    Reads reads = new Reads(binding, connection, call);
    boolean beside = call.collects() && binding.rests() && FieldRest.reads(command);
    CommandArguments wire = binding.rests() && FieldRest.reads(command) ? FieldRest.wireRead(command) : command;
    if (!multi || Commands.blocks(command)) {
      return reads.apart(command, wire, multi);
    }
    return reads.together(command, wire, beside);
  }

  private void waitFirst(boolean multi) {
    while (!call.ids().isEmpty()) {
      Seen seen = look(multi);
      if (seen == null || !again(call.judge(seen))) {
        return;
      }
    }
  }

  /** The read with the question behind it. */
  private Object apart(CommandArguments command, CommandArguments wire, boolean multi) {
    waitFirst(multi);
    connection.sendCommand(wire);
    connection.sendCommand(question());
    Object value = Exchange.one(connection, command.isBlocking());
    Object answer = Exchange.one(connection, false);
    call.saw(parsed(answer), Lineage.EMPTY);
    if (binding.rests() && FieldRest.reads(command) && binding.options().lineageIn()) {
      call.missed();
    }
    return value;
  }

  private Object together(CommandArguments command, CommandArguments wire, boolean beside) {
    while (true) {
      List<String> fields = call.foreign();
      List<CommandArguments> asked = new ArrayList<>();
      asked.add(new CommandArguments(Protocol.Command.MULTI));
      asked.add(question());
      if (!fields.isEmpty()) {
        asked.add(hmget(fields));
      }
      if (beside) {
        asked.add(new CommandArguments(Protocol.Command.HGET).add(command.get(1).getRaw()).add(FieldRest.FIELD));
      }
      asked.add(wire);
      asked.add(new CommandArguments(Protocol.Command.EXEC));
      List<Object> replies = ask(asked);
      if (!(replies.get(replies.size() - 1) instanceof List<?> whole)) {
        return aborted(replies, wire);
      }
      Object value = whole.get(whole.size() - 1);
      Seen found = seen(whole, fields);
      if (found == null) {
        refused(whole);
        call.saw(null, Lineage.EMPTY);
        return value;
      }
      if (call.isElsewhere(found.replication())) {
        continue; // its own epoch is known only now: whether that is marked decides about the others
      }
      if (again(call.ids().isEmpty() ? null : call.judge(found))) {
        continue;
      }
      if (call.collects()) {
        Object rest = beside ? whole.get(whole.size() - 2) : null;
        byte[] octets = rest instanceof byte[] text ? text : null;
        call.saw(found.replication(), AtRest.lineage(octets, binding.store().name(), binding.options().lineageIn()));
      }
      return value;
    }
  }

  /**
   * Where the connection's server is, with its marks; null where it refuses to say.
   *
   * @param multi false on a connection that watches keys: a MULTI of ours would end the application's WATCH
   */
  private Seen look(boolean multi) {
    Seen found = null;
    for (int round = 0; round < AGAIN; round++) {
      List<String> fields = call.foreign();
      List<CommandArguments> asked = new ArrayList<>(List.of(question()));
      boolean isWrapped = multi && !fields.isEmpty();
      if (!fields.isEmpty()) {
        asked.add(hmget(fields));
      }
      if (isWrapped) {
        asked.add(0, new CommandArguments(Protocol.Command.MULTI));
        asked.add(new CommandArguments(Protocol.Command.EXEC));
      }
      List<Object> replies = ask(asked);
      Object values = isWrapped ? replies.get(replies.size() - 1) : replies;
      found = values instanceof List<?> list ? seen(list, fields) : null;
      if (found == null) {
        refused(replies);
        return null;
      }
      if (!call.isElsewhere(found.replication())) {
        break;
      }
    }
    return found;
  }

  /** After a look: waits for the next one, if there is to be one. */
  private boolean again(Visibility trouble) {
    call.trouble(trouble);
    if (trouble == null || trouble.isUnproven() || binding.follows()) {
      return false;
    }
    long left = call.left();
    if (left <= 0) {
      return false;
    }
    Verdict told = ServerWait.at(binding.server(), Lineage.of(call.ids()), Duration.ofNanos(left));
    if (told != Verdict.VISIBLE && call.left() <= 0) {
      return true; // one last look
    }
    if (told != Verdict.VISIBLE || pause != FIRST_PAUSE) {
      // The engine may speak of another server than this connection's, or be overloaded: never in a hurry.
      LockSupport.parkNanos(Math.min(pause, Math.max(call.left(), 0)));
    }
    pause = Math.min(pause * 2, LAST_PAUSE);
    return true;
  }

  private CommandArguments hmget(List<String> fields) {
    CommandArguments asked = new CommandArguments(Protocol.Command.HMGET).add(binding.key());
    fields.forEach(asked::add);
    return asked;
  }

  private List<Object> ask(List<CommandArguments> commands) {
    commands.forEach(connection::sendCommand);
    return connection.getMany(commands.size());
  }

  /** What the replies say; null where the server refuses to say where it is. */
  private static Seen seen(List<?> values, List<String> fields) {
    Replication replication = parsed(values.get(0));
    if (replication == null) {
      return null;
    }
    if (fields.isEmpty()) {
      return Seen.of(replication, Map.of());
    }
    if (values.get(1) instanceof List<?> marks) {
      return Seen.of(replication, Session.marks(fields, marks));
    }
    if (values.get(1) instanceof JedisDataException error && !Session.isUnreadable(WriteCall.code(error))) {
      return null;
    }
    return new Seen(replication, Map.of(), "its marks cannot be read (" + words(values.get(1)) + ")");
  }

  /** The MULTI was refused: by the read itself, whose error the application gets, or by what we asked beside it. */
  private Object aborted(List<Object> replies, CommandArguments wire) {
    if (replies.get(replies.size() - 2) instanceof JedisDataException error) {
      throw error;
    }
    refused(replies);
    call.saw(null, Lineage.EMPTY);
    connection.sendCommand(wire);
    return connection.getOne();
  }

  private void refused(List<?> replies) {
    Object error = replies.stream().filter(JedisDataException.class::isInstance).findFirst().orElse(null);
    if (!call.ids().isEmpty()) {
      call.trouble(Visibility.unproven("its user may not ask where it is (" + words(error) + ")"));
    }
    binding.denied(words(error));
  }

  private static String words(Object error) {
    return error instanceof Exception thrown ? String.valueOf(thrown.getMessage()) : String.valueOf(error);
  }

  /** The answer to the question; null where it is an error or none came. */
  static Replication parsed(Object reply) {
    if (!(reply instanceof byte[])) {
      return null;
    }
    try {
      return Replication.parse(reply);
    } catch (IllegalArgumentException error) {
      return null;
    }
  }
}
