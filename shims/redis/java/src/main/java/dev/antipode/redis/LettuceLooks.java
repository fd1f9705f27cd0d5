package dev.antipode.redis;

import dev.antipode.BarrierException;
import dev.antipode.Verdict;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.WaitOnRead;
import io.lettuce.core.protocol.RedisCommand;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** What a read waits for on its own connection, without a thread that waits. */
final class LettuceLooks<K, V> {
  /** Why a read that came behind a look by another connection proves nothing. */
  static final String MADE_ANEW = "the connection was made anew between the look and the read";

  /** So often it is begun anew where the connection breaks again and again. */
  static final int MOST_TRIES = 3;

  private final Binding binding;
  private final LettuceLine<K, V> line;
  private final ReadCall call;
  private final List<RedisCommand<K, V, ?>> batched = new ArrayList<>(0); // the reads of a batch that share it
  private int rounds;
  private int tries;
  private long pause = Reads.FIRST_PAUSE;
  private LettuceLine.SendTime last; // the end of the look that ended the wait; null while there was none

  LettuceLooks(Binding binding, LettuceLine<K, V> line, ReadCall call) {
    this.binding = binding;
    this.line = line;
    this.call = call;
  }

  ReadCall call() {
    return call;
  }

  /** What reads, or may, and is in a batch shares it. */
  void sharedBy(RedisCommand<K, V, ?> read) {
    synchronized (batched) {
      batched.add(read);
    }
  }

  /** The batch is about to leave: where nobody answers, its reads have waited in vain, unless the policies let them go on. */
  void endBatched() {
    if (!call.isUnanswered() && !call.isRefused()) {
      return;
    }
    try {
      call.finish();
    } catch (BarrierException inVain) {
      synchronized (batched) {
        batched.forEach(each -> each.completeExceptionally(inVain));
      }
    }
  }

  /** Whether a command that was sent so went out behind the look, on its connection; or nothing has to be looked at. */
  boolean isBehind(LettuceLine.SendTime read) {
    return call.ids().isEmpty() || (last != null && read.isBehind(last));
  }

  /**
   * Looks until what the read waits for is there, or the call knows why it is not.
   *
   * @param multi false on a connection that watches keys: a MULTI of ours would end the application's WATCH
   * @param then called once whatever happens, on any thread
   */
  void waitFirst(boolean multi, Runnable then) {
    AtomicBoolean isOver = new AtomicBoolean();
    Runnable once = () -> {
      if (isOver.compareAndSet(false, true)) {
        then.run();
      }
    };
    last = null;
    if (call.ids().isEmpty()) {
      once.run();
    } else {
      look(multi, once);
    }
  }

  /** Else what waits for the look would wait for ever. */
  private void guarded(Runnable step, Runnable then) {
    try {
      step.run();
    } catch (RuntimeException | Error error) {
      call.unproven("it could not be asked where it is (" + error + ")");
      then.run();
    }
  }

  private void look(boolean multi, Runnable then) {
    guarded(() -> ask(multi, then), then);
  }

  private void ask(boolean multi, Runnable then) {
    List<String> fields = call.foreign();
    boolean asOne = multi && !fields.isEmpty();
    List<CommandWords> words = Looks.questions(binding, fields, multi);
    List<LettuceLine.SendTime> sent = words.stream().map(each -> new LettuceLine.SendTime()).toList();
    Asking<K, V> asking = questions(
        call, line, words, sent, replies -> guarded(() -> judge(replies, sent, fields, multi, then), then));
    if (asOne) {
      line.asOne(asking.commands(), () -> {
        asking.dropped();
        look(false, then);
      });
    } else {
      line.askAtOnce(asking.commands());
    }
  }

  private void judge(
      List<Object> replies, List<LettuceLine.SendTime> sent, List<String> fields, boolean multi, Runnable then) {
    if (failure(replies) == LettuceQuestion.LATE) {
      call.unanswered();
      then.run();
      return;
    }
    if (failure(replies) instanceof LettuceQuestion.Failure failed) {
      call.unasked(String.valueOf(failed.reason().getMessage()));
      then.run();
      return;
    }
    LettuceLine.SendTime end = sent.get(sent.size() - 1);
    List<?> values = Looks.answers(replies, fields, multi);
    boolean isTorn = values == null
        ? LettuceTransaction.isWithoutMulti(Looks.refusal(replies.subList(replies.size() - 1, replies.size())))
        : sent.size() > 1 && !end.isBehind(sent.get(0));
    if (isTorn) { // the connection broke in the middle, and Lettuce repeated the rest on the next one
      if (++tries < MOST_TRIES) {
        look(multi, then);
      } else {
        call.unasked("the connection breaks again and again");
        then.run();
      }
      return;
    }
    ServerState found = values == null ? null : Looks.seen(values, fields);
    if (found == null) {
      call.refused(Looks.refusal(replies));
      then.run();
      return;
    }
    if (call.isElsewhere(found.replication()) && ++rounds < Reads.AGAIN) {
      look(multi, then);
      return;
    }
    Visibility trouble = call.judge(found);
    last = end;
    if (!waits(trouble, () -> look(multi, then), then)) {
      then.run();
    }
  }

  /**
   * Whether there will be another look after this trouble.
   *
   * @param next that look; called once
   * @param failed called in its place where that throws
   */
  boolean waits(Visibility trouble, Runnable next, Runnable failed) {
    if (!call.isToWait(trouble)) {
      return false;
    }
    rounds = 0;
    WaitOnRead.verdictAsync(binding.server(), call.ids(), Duration.ofNanos(call.left()))
        .handle((told, error) -> {
          guarded(() -> later(told, next), failed);
          return null;
        });
    return true;
  }

  private void later(Verdict told, Runnable next) {
    long left = call.left();
    if (left <= 0 || (told == Verdict.VISIBLE && pause == Reads.FIRST_PAUSE)) {
      pause = Reads.FIRST_PAUSE + 1;
      next.run();
      return;
    }
    // The engine may speak of another server than this connection's, or be overloaded: never in a hurry.
    long now = Math.min(pause, left);
    pause = Math.min(pause * 2, Reads.LAST_PAUSE);
    CompletableFuture.delayedExecutor(now, TimeUnit.NANOSECONDS, Handover::to).execute(next);
  }

  /** Commands of ours that belong together; {@code answered} ends their time. */
  record Asking<K, V>(List<RedisCommand<K, V, ?>> commands, CompletableFuture<Void> answered) {
    /** They are not sent. */
    void dropped() {
      answered.complete(null);
    }
  }

  /**
   * Commands of ours whose replies are told when the last is there. Where they do not come in time, their connection is
   * closed, as they are still open on it (SHIM-47); where the call waits for nothing, they have time.
   */
  static <K, V> Asking<K, V> questions(
      ReadCall call,
      LettuceLine<K, V> line,
      List<CommandWords> commands,
      List<LettuceLine.SendTime> sent,
      Consumer<List<Object>> told) {
    CompletableFuture<Void> answered = new CompletableFuture<>();
    List<LettuceQuestion<K, V>> asked = questions(line, commands, sent, replies -> {
      answered.complete(null);
      told.accept(replies);
    });
    if (!call.ids().isEmpty()) {
      answered.exceptionallyAsync(
          late -> {
            sent.forEach(LettuceLine.SendTime::close);
            asked.forEach(LettuceQuestion::late);
            return null;
          },
          Handover::to);
      answered.orTimeout(call.questionTimeout().toNanos(), TimeUnit.NANOSECONDS);
    }
    return new Asking<>(List.copyOf(asked), answered);
  }

  private static <K, V> List<LettuceQuestion<K, V>> questions(
      LettuceLine<K, V> line, List<CommandWords> commands, List<LettuceLine.SendTime> sent, Consumer<List<Object>> told) {
    Object[] replies = new Object[commands.size()];
    List<LettuceQuestion<K, V>> made = new ArrayList<>(commands.size());
    for (int each = 0; each < replies.length; each++) {
      int place = each;
      made.add(new LettuceQuestion<>(line.codec(), line, sent.get(place), commands.get(place), reply -> {
        replies[place] = reply;
        if (place == replies.length - 1) {
          told.accept(Arrays.asList(replies));
        }
      }));
    }
    return made;
  }

  /** The first among replies that never came, or null. */
  static Object failure(List<?> replies) {
    return replies.stream().filter(LettuceQuestion.Failure.class::isInstance).findFirst().orElse(null);
  }
}
