package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.Verdict;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.WaitOnRead;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;

/** Reads by Jedis that wait, or that say what they depend on: the question and the read in one atomic step. */
final class Reads {
  /** Where the server is not the one that was waited at, the next look comes after this long, then twice that. */
  static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(1);

  /** The longest such pause. */
  static final long LAST_PAUSE = TimeUnit.MILLISECONDS.toNanos(50);

  /** So often it is looked again where the server's history changed between two questions. */
  static final int AGAIN = 3;

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
    return JedisWords.arguments(Looks.QUESTION);
  }

  /** Waits on this connection, with nothing but questions: before a pipeline, or a read that blocks. */
  static void waitOn(Binding binding, Connection connection, ReadCall call, boolean multi) {
    new Reads(binding, connection, call).waitFirst(multi);
  }

  /**
   * Reads, waits and reads again; returns the reply, not built yet, as the application gets it.
   *
   * @param multi whether the read may stand in a MULTI, where nothing comes between it and the question; where it may
   *     not, the question follows it in the same packet
   */
  static Object read(
      Binding binding, Connection connection, ReadCall call, CommandArguments command, boolean multi) {
    Reads reads = new Reads(binding, connection, call);
    boolean blocks = command.isBlocking() || Commands.blocks(new JedisWords(command));
    return !multi || blocks ? reads.apart(command, multi) : reads.together(command);
  }

  private void waitFirst(boolean multi) {
    while (!call.ids().isEmpty()) {
      ServerState seen = look(multi);
      if (seen == null || !again(call.judge(seen))) {
        return;
      }
    }
  }

  /** The read with the question behind it. */
  private Object apart(CommandArguments command, boolean multi) {
    waitFirst(multi);
    connection.sendCommand(JedisWords.arguments(binding.beside().wire(new JedisWords(command), null)));
    connection.sendCommand(question());
    Object value = CommandRoundTrip.one(connection, command.isBlocking());
    Object answer = CommandRoundTrip.one(connection, false);
    call.saw(Looks.parsed(answer), Lineage.EMPTY);
    return CommandRoundTrip.shown(binding, call, new JedisWords(command), value);
  }

  private Object together(CommandArguments command) {
    CommandWords words = new JedisWords(command);
    LineagePlacement beside = binding.beside();
    boolean answers = beside.answers(words);
    CommandWords asks = answers && call.collects() ? beside.asks(words) : null;
    CommandWords wire = answers ? beside.read(words) : words;
    while (true) {
      List<String> fields = call.foreign();
      List<Object> replies = ask(Looks.together(binding, fields, asks, wire));
      if (!(replies.get(replies.size() - 1) instanceof List<?> whole)) {
        return aborted(replies, command, wire);
      }
      List<?> said = CommandRoundTrip.withServerErrors(whole);
      Object value = whole.get(whole.size() - 1);
      ServerState found = Looks.seen(said, fields);
      if (found == null) {
        call.refused(Looks.refusal(said));
        call.saw(null, Lineage.EMPTY);
        return CommandRoundTrip.shown(binding, null, words, value);
      }
      if (call.isElsewhere(found.replication())) {
        continue; // its own epoch is known only now: whether that is marked decides about the others
      }
      if (again(call.ids().isEmpty() ? null : call.judge(found))) {
        continue;
      }
      if (!call.collects()) {
        return CommandRoundTrip.shown(binding, null, words, value);
      }
      call.saw(found.replication(), asks == null ? Lineage.EMPTY : beside.lineage(whole.get(whole.size() - 2)));
      return CommandRoundTrip.shown(binding, asks == null ? call : null, words, value);
    }
  }

  /**
   * Where the connection's server is, with its marks; null where it refuses to say.
   *
   * @param multi false on a connection that watches keys: a MULTI of ours would end the application's WATCH
   */
  private ServerState look(boolean multi) {
    ServerState found = null;
    for (int round = 0; round < AGAIN; round++) {
      List<String> fields = call.foreign();
      List<?> replies = CommandRoundTrip.withServerErrors(ask(Looks.questions(binding, fields, multi)));
      List<?> values = Looks.answers(replies, fields, multi);
      found = values == null ? null : Looks.seen(CommandRoundTrip.withServerErrors(values), fields);
      if (found == null) {
        call.refused(Looks.refusal(replies));
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
    if (!call.isToWait(trouble)) {
      return false;
    }
    Verdict told = WaitOnRead.verdict(binding.server(), call.ids(), Duration.ofNanos(call.left()));
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

  private List<Object> ask(List<CommandWords> commands) {
    int own = connection.getSoTimeout();
    int most = (int) call.questionTimeout().toMillis();
    boolean isShorter = !call.ids().isEmpty() && (own == 0 || most < own);
    if (isShorter) {
      connection.setSoTimeout(most);
    }
    try {
      commands.forEach(each -> connection.sendCommand(JedisWords.arguments(each)));
      List<Object> replies = new ArrayList<>(connection.getMany(commands.size()));
      if (isShorter) {
        connection.setSoTimeout(own);
      }
      return replies;
    } catch (JedisConnectionException error) { // Jedis closes the connection
      if (isShorter && error.getCause() instanceof SocketTimeoutException) {
        giveBack();
        call.unanswered();
        call.finish();
      }
      throw error;
    }
  }

  /** Gives a broken connection back to its pool, which makes another one then: that may take as long as it likes. */
  private void giveBack() {
    ConnectionPool pool = JedisTargets.get(Connection.class, "memberOf", connection);
    if (pool != null) {
      connection.setHandlingPool(null); // closed by whoever has it, it only ends
      Handover.to(Reads::start, () -> {
        try {
          pool.returnBrokenResource(connection);
        } catch (JedisException unreachable) {
          // the pool makes another one when it is asked for one
        }
      });
    }
  }

  private static void start(Runnable work) {
    Thread thread = new Thread(work, "antipode-redis-broken");
    thread.setDaemon(true);
    thread.start();
  }

  /** The MULTI was refused: by the read itself, whose error the application gets, or by what we asked beside it. */
  private Object aborted(List<Object> replies, CommandArguments command, CommandWords wire) {
    if (replies.get(replies.size() - 2) instanceof JedisDataException error) {
      throw error;
    }
    call.refused(Looks.refusal(CommandRoundTrip.withServerErrors(replies)));
    call.saw(null, Lineage.EMPTY);
    connection.sendCommand(JedisWords.arguments(wire));
    return CommandRoundTrip.shown(binding, null, new JedisWords(command), CommandRoundTrip.one(connection, false));
  }
}
