package dev.antipode.redis;

import dev.antipode.Lineage;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.util.IOUtils;

/**
 * A pipeline of a wrapped client: one question a batch, behind its last command. The writes are pending from the first
 * command that may write.
 */
public final class RecordingPipeline extends AbstractPipeline {
  private record Queued(Words command, boolean writes, Response<?> response) {}

  private final Connection connection;
  private final Binding binding;
  private final Queue<Queued> queued = new ArrayDeque<>();
  private final List<Object> settled = new ArrayList<>(); // replies of commands before a read that had to wait
  private WriteCall write;
  private ReadCall read;
  private boolean hasSucceeded;

  RecordingPipeline(Connection connection, CommandObjects commandObjects, Binding binding) {
    super(commandObjects);
    this.connection = connection;
    this.binding = binding;
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    Words words = new JedisWords(command.getArguments());
    binding.beside().check(words);
    Commands.Kind kind = Commands.classify(words);
    boolean writes = kind == Commands.Kind.WRITE || kind == Commands.Kind.MAYBE;
    if (binding.records() && writes) {
      if (write == null) {
        write = new WriteCall(binding, true);
        hasSucceeded = false;
      }
      if (kind == Commands.Kind.MAYBE) {
        write.uncertain();
      }
      write.begins();
    } else if (kind == Commands.Kind.READ) {
      readFirst();
    }
    connection.sendCommand(JedisWords.arguments(binding.beside().wire(words, write)));
    Response<T> response = new Response<>(command.getBuilder());
    queued.add(new Queued(words, writes, response));
    return response;
  }

  /** The first read of a batch waits before it is sent; what was sent before it is answered then. */
  private void readFirst() {
    if (read != null || !binding.records()) {
      return;
    }
    read = ReadCall.of(binding);
    if (read != null && !read.ids().isEmpty()) {
      settle(false);
      Reads.waitOn(binding, connection, read, true);
    }
  }

  /** Reads the replies; with {@code asks}, the question goes behind the last command. */
  private void settle(boolean asks) {
    boolean isAsked = asks && binding.mayAsk() && (write != null || (read != null && read.collects()));
    if (isAsked) {
      connection.sendCommand(Reads.question());
    }
    List<Object> replies = connection.getMany(queued.size());
    for (Object reply : replies) {
      Queued each = queued.remove();
      Object shown = each.writes()
          ? Exchange.shownByWrite(binding, write, each.command(), reply)
          : Exchange.shown(binding, read, each.command(), reply);
      each.response().set(shown);
      settled.add(built(each.response()));
      hasSucceeded |= !(reply instanceof JedisDataException);
    }
    Object answer = isAsked ? Exchange.hear(connection) : null;
    if (write != null && asks) {
      write.answered(answer);
    }
    if (read != null && asks && read.collects()) {
      read.saw(Looks.parsed(answer), Lineage.EMPTY);
    }
  }

  private static Object built(Response<?> response) {
    try {
      return response.get();
    } catch (JedisDataException error) {
      return error;
    }
  }

  /** Sends what is queued and reads the replies, which the responses then have. */
  @Override
  public void sync() {
    syncAndReturnAll();
  }

  /** The same, and returns the replies in order; errors are among them. */
  public List<Object> syncAndReturnAll() {
    if (queued.isEmpty() && settled.isEmpty()) {
      return List.of();
    }
    WriteCall written = write;
    ReadCall done = read;
    List<Object> replies;
    try {
      settle(true);
      replies = new ArrayList<>(settled);
    } catch (RuntimeException | Error error) {
      if (written != null) {
        written.broke();
        Exchange.failed(written, error);
      }
      throw error;
    } finally {
      write = null;
      read = null;
      settled.clear();
    }
    if (written != null) {
      if (hasSucceeded || !written.isCertain()) {
        written.done(replies);
      } else {
        written.abandon();
      }
    }
    if (done != null) {
      done.finish();
    }
    return replies;
  }

  @Override
  public void close() {
    try {
      sync();
    } finally {
      IOUtils.closeQuietly(connection);
    }
  }
}
