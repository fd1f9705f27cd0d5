package dev.antipode.redis;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import redis.clients.jedis.CommandObject;

/** Reads by Jedis that are sent at once, with what they have to do besides. */
final class JedisReads {
  private JedisReads() {}

  /** Reads; {@code execute} is given the command as it is where it is a plain one. */
  static <T> T read(Binding binding, CommandObject<T> command, CommandWords words, Function<CommandObject<T>, T> execute) {
    ReadCall call = ReadCall.of(binding, true);
    boolean isPlain = call == null && !binding.beside().concerns(words);
    try {
      T value = execute.apply(isPlain ? command : new CommandRoundTrip.RecordedCommand<>(command, null, call));
      if (call != null) {
        finish(call, binding, command, words, value);
      }
      return value;
    } finally {
      if (call != null) {
        call.failed(); // where it was not over before
      }
    }
  }

  private static void finish(ReadCall call, Binding binding, CommandObject<?> command, CommandWords words, Object value) {
    if (!binding.follows() || !ReadRepeater.mayRepeat(binding, words)) {
      call.finish();
      return;
    }
    List<byte[]> kept = new ArrayList<>(words.copy()); // the application may use its arrays again
    kept.replaceAll(byte[]::clone);
    call.finish(() -> value, () -> ReadRepeater.again(binding, CommandWords.of(kept), command.getBuilder()::build));
  }
}
