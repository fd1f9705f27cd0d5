package dev.antipode.redis;

import dev.antipode.BarrierException;
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
  private record QueuedCommand(CommandWords command, boolean writes, ReadCall read, Response<?> response) {}

  private final Connection connection;
  private final Binding binding;
  private final Queue<QueuedCommand> queued = new ArrayDeque<>();
  private final List<CommandWords> unsent = new ArrayList<>(); // the first read that may have to wait, and what follows it
  private final List<Response<?>> settled = new ArrayList<>(); // what was sent before a read that had to wait
  private WriteCall write;
  private final ReadCalls reads = new ReadCalls();
  private boolean hasSucceeded;
  private boolean hasSentReads; // while nothing was to wait

  RecordingPipeline(Connection connection, CommandObjects commandObjects, Binding binding) {
    super(commandObjects);
    this.connection = connection;
    this.binding = binding;
  }

  @Override
  protected <T> Response<T> appendCommand(CommandObject<T> command) {
    CommandWords words = new JedisWords(command.getArguments());
    binding.beside().check(words);
    Commands.Kind kind = Commands.classify(words);
    boolean writes = kind.mayWrite();
    if (binding.records() && writes) {
      if (write == null) {
        write = new WriteCall(binding, true);
        hasSucceeded = false;
      }
      if (kind == Commands.Kind.MAYBE) {
        write.uncertain();
      }
      write.begins();
      write.with(words);
    }
    boolean mayRead = Commands.mayRead(kind, words);
    ReadCall read = mayRead ? reads.of(binding, kind == Commands.Kind.READ) : null;
    CommandWords wire = binding.beside().wire(words, write);
    boolean mayWait = mayRead && (binding.waits() || (read != null && read.mayWait(true)));
    if (mayWait || !unsent.isEmpty()) {
      unsent.add(wire);
    } else {
      connection.sendCommand(JedisWords.arguments(wire));
      hasSentReads |= mayRead;
    }
    Response<T> response = new Response<>(command.getBuilder());
    queued.add(new QueuedCommand(words, writes, read, response));
    return response;
  }

  /**
   * Sends what is left, behind what its reads have to wait for by now; what was sent before is answered first then. Nothing of
   * it is sent where a read is refused, which the reads' end says.
   */
  private void sendRest() {
    ReadCall sending;
    try {
      sending = reads.leave(binding);
    } catch (BarrierException refused) {
      return;
    }
    if (!unsent.isEmpty() && reads.haveToWait()) {
      settle(queued.size() - unsent.size(), false);
      reads.forEach(each -> Reads.waitOn(binding, connection, each, true));
    }
    if (sending != null && hasSentReads) { // last: a wait that found all there would forget it
      sending.waitedWith(null, "a read of the pipeline was sent before what has to be shown was known: read anew");
    }
    unsent.forEach(each -> connection.sendCommand(JedisWords.arguments(each)));
    unsent.clear();
  }

  /** Reads replies; with {@code asks}, the question goes behind the last command. */
  private void settle(int count, boolean asks) {
    boolean isAsked = asks && binding.mayAsk() && (write != null || reads.collects());
    if (isAsked) {
      connection.sendCommand(Reads.question());
    }
    List<Object> replies = connection.getMany(count);
    Object answer = isAsked ? CommandRoundTrip.hear(connection) : null;
    for (Object reply : replies) {
      QueuedCommand each = queued.remove();
      Object shown = each.writes()
          ? CommandRoundTrip.shownByWrite(binding, write, each.command(), reply)
          : CommandRoundTrip.shown(binding, reads.takerOf(each.read()), each.command(), reply);
      each.response().set(shown);
      tell(each, reply, shown);
      settled.add(each.response());
      hasSucceeded |= !(reply instanceof JedisDataException);
    }
    if (write != null && asks) {
      write.answered(answer);
    }
    if (asks) {
      reads.saw(answer);
    }
  }

  /** A recorded history is told of a command and its reply. */
  private void tell(QueuedCommand each, Object reply, Object shown) {
    if (each.writes() && write != null) {
      write.says(each.command(), reply);
    }
    if (each.read() != null) {
      each.read().answered(each.command(), shown);
    }
  }

  /** The replies as Jedis gives them, once all is recorded: the application's builders may throw anything. */
  static List<Object> built(List<Response<?>> responses) {
    List<Object> replies = new ArrayList<>(responses.size());
    for (Response<?> each : responses) {
      try {
        replies.add(each.get());
      } catch (JedisDataException error) {
        replies.add(error);
      }
    }
    return replies;
  }

  /** Sends what is queued and reads the replies, which the responses then have. */
  @Override
  public void sync() {
    settleAll();
  }

  /** The same, and returns the replies in order; errors are among them. */
  public List<Object> syncAndReturnAll() {
    return built(settleAll());
  }

  private List<Response<?>> settleAll() {
    if (queued.isEmpty() && settled.isEmpty()) {
      return List.of();
    }
    WriteCall written = write;
    if (written != null) {
      written.executes();
    }
    try {
      sendRest();
      settle(queued.size() - unsent.size(), true);
      List<Response<?>> responses = List.copyOf(settled);
      if (written != null && (hasSucceeded || !written.isCertain())) {
        written.done(responses);
      } else if (written != null) {
        written.abandon();
      }
      reads.finish();
      return responses;
    } catch (RuntimeException | Error error) {
      if (written != null) {
        written.broke();
        CommandRoundTrip.failed(written, error);
      }
      throw error;
    } finally {
      write = null;
      hasSentReads = false;
      reads.clear();
      unsent.clear();
      queued.clear(); // where it failed: close() asks for no more replies
      settled.clear();
    }
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
