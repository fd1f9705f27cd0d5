package dev.antipode.redis;

import dev.antipode.BarrierException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.IOUtils;

/**
 * A transaction of a wrapped client: its writes are pending from the first queued command that may write, and get their
 * position by a question behind EXEC (SHIM-11). What is queued is sent at {@link #exec}: a read in it may have to wait
 * before MULTI.
 */
public final class RecordingTransaction extends AbstractTransaction {
  private record QueuedCommand(
      CommandWords command, boolean writes, ReadCall read, CommandWords wire, Response<?> response) {}

  private final Connection connection;
  private final Binding binding;
  private final Queue<QueuedCommand> queued = new ArrayDeque<>();
  private WriteCall write;
  private final ReadCalls reads = new ReadCalls();
  private boolean broken;
  private boolean inWatch;
  private boolean inMulti;

  RecordingTransaction(Connection connection, boolean doMulti, CommandObjects commandObjects, Binding binding) {
    super(commandObjects);
    this.connection = connection;
    this.binding = binding;
    if (doMulti) {
      multi();
    }
  }

  @Override
  public void multi() {
    inMulti = true;
  }

  @Override
  public String watch(String... keys) {
    String status = connection.executeCommand(commandObjects.watch(keys));
    inWatch = true;
    return status;
  }

  @Override
  public String watch(byte[]... keys) {
    String status = connection.executeCommand(commandObjects.watch(keys));
    inWatch = true;
    return status;
  }

  @Override
  public String unwatch() {
    connection.sendCommand(Protocol.Command.UNWATCH);
    String status = connection.getStatusCodeReply();
    inWatch = false;
    return status;
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    CommandWords words = new JedisWords(command.getArguments());
    binding.beside().check(words);
    if (!inMulti) {
      return atOnce(command, words);
    }
    Commands.Kind kind = Commands.classify(words);
    boolean writes = kind.mayWrite();
    if (binding.records() && writes) {
      if (write == null) {
        write = new WriteCall(binding, true);
      }
      if (kind == Commands.Kind.MAYBE) {
        write.uncertain();
      }
      write.with(words);
    }
    ReadCall read = Commands.mayRead(kind, words) ? reads.of(binding, kind == Commands.Kind.READ) : null;
    Response<T> response = new Response<>(command.getBuilder());
    queued.add(new QueuedCommand(words, writes, read, binding.beside().wire(words, write), response));
    return response;
  }

  /** A command between WATCH and MULTI is executed at once. */
  private <T> Response<T> atOnce(CommandObject<T> command, CommandWords words) {
    Commands.Kind kind = Commands.classify(words);
    try {
      if (kind == Commands.Kind.READ) {
        return Response.of(JedisReads.read(
            binding, command, words, sent -> CommandRoundTrip.execute(binding, connection, sent, false)));
      }
      if (kind == Commands.Kind.OTHER || !binding.records()) {
        CommandObject<T> sent =
            binding.beside().concerns(words) ? new CommandRoundTrip.RecordedCommand<>(command, null, null) : command;
        return Response.of(CommandRoundTrip.execute(binding, connection, sent, false));
      }
      WriteCall call = new WriteCall(binding, kind == Commands.Kind.WRITE).with(words);
      try {
        ReadCall read = Commands.mayRead(kind, words) ? ReadCall.of(binding, false) : null;
        return Response.of(CommandRoundTrip.execute(
            binding, connection, new CommandRoundTrip.RecordedCommand<>(command, call, read), false));
      } catch (RuntimeException | Error error) {
        CommandRoundTrip.failed(call, error);
        throw error;
      }
    } catch (JedisDataException error) {
      return Response.error(error);
    }
  }

  @Override
  public List<Object> exec() {
    if (!inMulti) {
      throw new IllegalStateException("EXEC without MULTI");
    }
    WriteCall written = write;
    if (written != null) {
      written.executes();
    }
    try {
      List<Object> replies = execute(written);
      if (replies != null) {
        reads.finish();
      }
      return replies;
    } catch (JedisConnectionException error) {
      broken = true;
      throw error;
    } finally {
      forget();
    }
  }

  private List<Object> execute(WriteCall written) {
    List<Object> queuedReplies;
    try {
      queuedReplies = send(written);
    } catch (RuntimeException | Error error) { // there was no EXEC yet: nothing was done where MULTI was
      if (written != null) {
        CommandRoundTrip.failed(written, error);
      }
      throw error;
    }
    List<Object> raw;
    try {
      raw = executeAll(written);
    } catch (JedisDataException error) {
      queuedReplies.stream()
          .filter(Exception.class::isInstance)
          .map(Exception.class::cast)
          .forEach(error::addSuppressed);
      if (written != null) {
        CommandRoundTrip.failed(written, error);
      }
      throw error;
    } catch (RuntimeException | Error error) {
      if (written != null) {
        written.broke();
        CommandRoundTrip.failed(written, error);
      }
      throw error;
    }
    if (raw == null) { // a watched key was changed: nothing was done
      if (written != null) {
        written.abandon();
      }
      return null;
    }
    List<Response<?>> responses = answered(raw);
    if (written != null) {
      boolean isAllInVain = !raw.isEmpty() && raw.stream().allMatch(JedisDataException.class::isInstance);
      if (isAllInVain && written.isCertain()) {
        written.abandon();
      } else {
        written.done(raw);
      }
    }
    return RecordingPipeline.built(responses); // last of all: the application's builders may throw anything
  }

  /** Waits where a read has to, and queues at the server; what that says. */
  private List<Object> send(WriteCall written) {
    try {
      reads.leave(binding);
    } catch (BarrierException refused) {
      if (inWatch) {
        unwatch(); // the connection goes back to its pool
      }
      throw refused;
    }
    reads.forEach(each -> Reads.waitOn(binding, connection, each, !inWatch));
    connection.sendCommand(Protocol.Command.MULTI);
    boolean isOpen = false;
    try {
      queued.forEach(each -> connection.sendCommand(JedisWords.arguments(each.wire())));
      List<Object> replies = new ArrayList<>(1 + queued.size());
      replies.add(CommandRoundTrip.one(connection, false));
      isOpen = !(replies.get(0) instanceof JedisDataException);
      replies.addAll(connection.getMany(queued.size()));
      return replies;
    } finally {
      if (!isOpen && written != null) {
        written.broke(); // MULTI was refused, or nobody knows: what was sent with it may have been executed by itself
      }
    }
  }

  /** EXEC with the question behind it. */
  private List<Object> executeAll(WriteCall written) {
    boolean asks = binding.mayAsk() && (written != null || reads.collects());
    if (written != null) {
      written.begins();
    }
    connection.sendCommand(Protocol.Command.EXEC);
    if (asks) {
      connection.sendCommand(Reads.question());
    }
    Object reply = CommandRoundTrip.one(connection, false);
    Object answer = asks ? CommandRoundTrip.hear(connection) : null;
    if (written != null) {
      written.answered(answer);
    }
    if (reply instanceof JedisDataException error) {
      throw error;
    }
    reads.saw(answer);
    @SuppressWarnings("unchecked") // EXEC answers with an array or null
    List<Object> raw = (List<Object>) reply;
    return raw;
  }

  private List<Response<?>> answered(List<Object> raw) {
    List<Response<?>> responses = new ArrayList<>(raw.size());
    for (Object each : raw) {
      QueuedCommand next = queued.remove();
      Object shown = next.writes()
          ? CommandRoundTrip.shownByWrite(binding, write, next.command(), each)
          : CommandRoundTrip.shown(binding, reads.takerOf(next.read()), next.command(), each);
      next.response().set(shown);
      if (next.writes() && write != null) {
        write.says(next.command(), each);
      }
      if (next.read() != null) {
        next.read().answered(next.command(), shown);
      }
      responses.add(next.response());
    }
    return responses;
  }

  @Override
  public String discard() {
    if (!inMulti) {
      throw new IllegalStateException("DISCARD without MULTI");
    }
    try {
      connection.sendCommand(Protocol.Command.MULTI); // nothing was sent yet: what is lost or refused shows as in Jedis
      connection.sendCommand(Protocol.Command.DISCARD);
      CommandRoundTrip.one(connection, false);
      return connection.getStatusCodeReply();
    } catch (JedisConnectionException error) {
      broken = true;
      throw error;
    } finally {
      if (write != null) {
        write.abandon();
      }
      forget();
    }
  }

  private void forget() {
    inMulti = false;
    inWatch = false;
    write = null;
    reads.clear();
    queued.clear();
  }

  /** Gives the connection back; what was queued and never executed did not happen. */
  @Override
  public void close() {
    try {
      if (write != null) {
        write.abandon();
      }
      if (broken) {
        return;
      }
      if (inMulti) {
        discard();
      } else if (inWatch) {
        unwatch();
      }
    } finally {
      IOUtils.closeQuietly(connection);
    }
  }
}
