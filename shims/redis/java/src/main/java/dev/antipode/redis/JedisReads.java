package dev.antipode.redis;

import dev.antipode.shim.FollowedRead;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import redis.clients.jedis.CommandObject;

/** Reads by Jedis that are sent at once, with what they have to do besides. */
final class JedisReads {
  private JedisReads() {}

  /** Reads; {@code execute} is given the command as it is where it is a plain one. */
  static <T> T read(Binding binding, CommandObject<T> command, Words words, Function<CommandObject<T>, T> execute) {
    ReadCall call = binding.records() ? ReadCall.of(binding) : null;
    FollowedRead followed = binding.follows() ? FollowedRead.of(binding.store()) : null;
    NotedReads noted = NotedReads.of(binding);
    boolean isPlain = call == null && noted == null && !binding.beside().concerns(words);
    try {
      T value = execute.apply(isPlain ? command : new Exchange.Recorded<>(command, null, call, noted));
      if (followed != null) { // before it is merged what the value depends on
        came(followed, binding, command, value);
      }
      if (call != null) {
        call.finish();
      }
      if (noted != null) {
        noted.over(call == null ? null : call.covers());
      }
      return value;
    } finally {
      if (noted != null) {
        noted.failed(); // where it was not over before
      }
    }
  }

  private static void came(FollowedRead followed, Binding binding, CommandObject<?> command, Object value) {
    Words words = new JedisWords(command.getArguments());
    if (!Repeating.mayRepeat(binding, words)) {
      followed.over(binding.server());
      return;
    }
    List<byte[]> kept = new ArrayList<>(words.copy()); // the application may use its arrays again
    kept.replaceAll(byte[]::clone);
    followed.over(
        binding.server(),
        () -> value,
        () -> Repeating.again(binding, Words.of(kept), command.getBuilder()::build));
  }
}
