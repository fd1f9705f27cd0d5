package dev.antipode.redis;

import dev.antipode.BarrierException;
import dev.antipode.Lineage;
import dev.antipode.shim.Visibility;
import io.lettuce.core.protocol.RedisCommand;
import java.util.List;

/**
 * A read that waits, or that says what it depends on: the question and the read in one MULTI where the connection allows
 * it, which nothing of another thread comes into (SHIM-13, BAR-50). A read that has to wait is sent again later: what is
 * issued meanwhile goes ahead of it, but for the application's WATCH and MULTI, which wait for the read's turn to end.
 */
final class LettuceRead<K, V, T> {
  private final RecordingConnection<K, V> connection;
  private final LettuceLine<K, V> line;
  private final Binding binding;
  private final ReadCall call;
  private final RedisCommand<K, V, T> command;
  private final CommandWords words;
  private final CommandWords wire;
  private final CommandWords asks;
  private final boolean multi;
  private final Runnable end;
  private LettuceLooks<K, V> looks;
  private int tries;

  /**
   * A read that has its turn.
   *
   * @param end ends the turn: the read will not be sent again
   */
  LettuceRead(
      RecordingConnection<K, V> connection,
      ReadCall call,
      RedisCommand<K, V, T> command,
      CommandWords words,
      Runnable end) {
    this.connection = connection;
    this.line = connection.line();
    this.binding = connection.binding();
    this.call = call;
    this.command = command;
    this.words = words;
    this.end = end;
    this.multi = connection.mayMulti(); // nobody else begins to watch or a transaction while this has its turn
    LineagePlacement beside = binding.beside();
    boolean answers = beside.answers(words);
    this.wire = answers ? beside.read(words) : words;
    this.asks = answers && call.collects() ? beside.asks(words) : null;
    this.looks = new LettuceLooks<>(binding, line, call);
  }

  void start() {
    LettuceLooks<K, V> ofBatch = line.inBatch(looks);
    if (ofBatch != null) {
      looks = ofBatch;
      looks.sharedBy(command);
      send(false);
    } else if (multi && !Commands.blocks(words)) {
      together();
    } else {
      apart();
    }
  }

  private void together() {
    List<String> fields = call.foreign();
    List<CommandWords> commands = Looks.together(binding, fields, asks, wire);
    List<LettuceLine.SendTime> nowhere = commands.stream().map(each -> new LettuceLine.SendTime()).toList();
    LettuceLooks.Asking<K, V> asking =
        LettuceLooks.questions(call, line, commands, nowhere, replies -> judge(replies, fields));
    line.asOne(asking.commands(), () -> {
      asking.dropped();
      apart();
    });
  }

  private void judge(List<Object> replies, List<String> fields) {
    if (command.isDone()) {
      end.run(); // the application has given it up
      return;
    }
    try {
      judgeOpen(replies, fields);
    } catch (RuntimeException | Error error) { // Lettuce would keep it to itself
      fail(error);
    }
  }

  private void fail(Throwable error) {
    end.run();
    command.completeExceptionally(error);
  }

  private void judgeOpen(List<Object> replies, List<String> fields) {
    Object last = replies.get(replies.size() - 1);
    if (last == LettuceQuestion.LATE) {
      call.unanswered();
      sendApart();
    } else if (last instanceof LettuceQuestion.Failure failed) {
      fail(failed.reason());
    } else if (last instanceof List<?> whole) {
      judgeWhole(whole, fields);
    } else {
      aborted(replies, String.valueOf(last));
    }
  }

  private void judgeWhole(List<?> whole, List<String> fields) {
    Object value = whole.get(whole.size() - 1);
    ServerState found = Looks.seen(whole, fields);
    if (found == null) {
      call.refused(Looks.refusal(whole));
      call.saw(null, Lineage.EMPTY);
      give(value, false);
      return;
    }
    if (call.isElsewhere(found.replication())) {
      together(); // its own epoch is known only now: whether that is marked decides about the others
      return;
    }
    Visibility trouble = call.ids().isEmpty() ? null : call.judge(found);
    if (looks.waits(trouble, this::again, this::sendApart)) {
      return;
    }
    if (call.collects()) {
      Object beside = asks == null ? null : whole.get(whole.size() - 2);
      call.saw(found.replication(), asks == null ? Lineage.EMPTY : binding.beside().lineage(beside));
    }
    give(value, asks == null);
  }

  private void again() {
    if (command.isDone()) {
      end.run();
      return;
    }
    try {
      together();
    } catch (RuntimeException | Error error) { // nobody else would end this
      fail(error);
    }
  }

  /** The MULTI came to nothing. */
  private void aborted(List<Object> replies, String words) {
    if (replies.get(replies.size() - 2) instanceof ServerError error) {
      give(error, false); // the read itself was refused: the application gets that
    } else if (LettuceTransaction.isWithoutMulti(words)) {
      tries++; // the connection broke in the middle, and Lettuce repeated the rest on the next one
      if (tries < LettuceLooks.MOST_TRIES) {
        together();
      } else {
        apart();
      }
    } else {
      call.refused(Looks.refusal(replies));
      sendApart();
    }
  }

  private void give(Object value, boolean holdsLineage) {
    end.run();
    try {
      Object shown = binding.beside().answers(words)
          ? VisibleReplyOutput.shown(words, value, binding.beside(), holdsLineage ? call::sawBeside : nowhere -> {})
          : value;
      LettuceReply.give(shown, command.getOutput());
      if (!(value instanceof ServerError)) {
        call.finish();
      }
    } catch (RuntimeException | Error error) {
      command.completeExceptionally(error);
      return;
    }
    command.complete();
  }

  /** The question goes before and after the read. */
  private void apart() {
    looks.waitFirst(multi, this::sendApart);
  }

  private void sendApart() {
    if (command.isDone()) {
      end.run();
      return;
    }
    if (looks.call().isUnanswered()) { // it may be long until it answers
      try {
        looks.call().finish();
      } catch (BarrierException inVain) {
        fail(inVain);
        return;
      }
    }
    send(true);
  }

  private void send(boolean late) {
    boolean collects = call.collects() && binding.mayAsk();
    try {
      LettuceSeen<K, V, T> seen = new LettuceSeen<>(
          command,
          line,
          looks,
          collects,
          wire == words ? null : wire,
          connection.shown(command, words, looks.call()::sawBeside));
      if (late) {
        seen.makeLate();
      }
      connection.sendAsked(seen);
    } catch (RuntimeException | Error error) {
      command.completeExceptionally(error);
    } finally {
      end.run();
    }
  }
}
