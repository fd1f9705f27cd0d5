package dev.antipode.redis;

import dev.antipode.Lineage;
import dev.antipode.Verdict;
import dev.antipode.barrier.ServerWait;
import dev.antipode.shim.Visibility;
import io.lettuce.core.protocol.RedisCommand;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** What a read waits for on its own connection, without a thread that waits. */
final class LettuceLooks<K, V> {
  private final Binding binding;
  private final LettuceLine<K, V> line;
  private final ReadCall call;
  private int rounds;
  private long pause = Reads.FIRST_PAUSE;

  LettuceLooks(Binding binding, LettuceLine<K, V> line, ReadCall call) {
    this.binding = binding;
    this.line = line;
    this.call = call;
  }

  /**
   * Looks until what the read waits for is there, or the call knows why it is not.
   *
   * @param multi false on a connection that watches keys: a MULTI of ours would end the application's WATCH
   * @param then called once, on any thread
   */
  void waitFirst(boolean multi, Runnable then) {
    if (call.ids().isEmpty()) {
      then.run();
      return;
    }
    List<String> fields = call.foreign();
    boolean asOne = multi && !fields.isEmpty();
    Consumer<List<Object>> judged = replies -> judge(replies, fields, multi, then);
    List<RedisCommand<K, V, ?>> questions =
        questions(binding, line, Looks.questions(binding, fields, multi), judged);
    if (asOne) {
      line.asOne(questions, () -> waitFirst(false, then));
    } else {
      line.askAtOnce(questions);
    }
  }

  private void judge(List<Object> replies, List<String> fields, boolean multi, Runnable then) {
    if (failure(replies) instanceof LettuceQuestion.Failure failed) {
      call.unasked(String.valueOf(failed.reason().getMessage()));
      then.run();
      return;
    }
    List<?> values = Looks.answers(replies, fields, multi);
    Seen found = values == null ? null : Looks.seen(values, fields);
    if (found == null) {
      call.refused(Looks.refusal(replies));
      then.run();
      return;
    }
    if (call.isElsewhere(found.replication()) && ++rounds < Reads.AGAIN) {
      waitFirst(multi, then);
      return;
    }
    if (!waits(call.judge(found), () -> waitFirst(multi, then))) {
      then.run();
    }
  }

  /** Whether there will be another look after this trouble: {@code next}, once. */
  boolean waits(Visibility trouble, Runnable next) {
    if (!call.isToWait(trouble)) {
      return false;
    }
    rounds = 0;
    ServerWait.later(binding.server(), Lineage.of(call.ids()), Duration.ofNanos(call.left())).thenAccept(told -> {
      long left = call.left();
      if (left <= 0 || (told == Verdict.VISIBLE && pause == Reads.FIRST_PAUSE)) {
        pause = Reads.FIRST_PAUSE + 1;
        next.run();
        return;
      }
      // The engine may speak of another server than this connection's, or be overloaded: never in a hurry.
      long now = Math.min(pause, left);
      pause = Math.min(pause * 2, Reads.LAST_PAUSE);
      CompletableFuture.delayedExecutor(now, TimeUnit.NANOSECONDS).execute(next);
    });
    return true;
  }

  /** Commands of ours whose replies are told when the last is there. */
  static <K, V> List<RedisCommand<K, V, ?>> questions(
      Binding binding, LettuceLine<K, V> line, List<Words> commands, Consumer<List<Object>> told) {
    Object[] replies = new Object[commands.size()];
    List<RedisCommand<K, V, ?>> made = new ArrayList<>(commands.size());
    for (int each = 0; each < replies.length; each++) {
      int place = each;
      made.add(new LettuceQuestion<>(line.codec(), line, new LettuceLine.Sent(), commands.get(place), reply -> {
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
