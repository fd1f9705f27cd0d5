package dev.antipode.redis;

import dev.antipode.shim.FollowedRead;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.CommandObject;

/** Reads by Jedis that dry-run follows (REC-12). */
final class JedisReads {
  private JedisReads() {}

  /** The application gets this. */
  static void came(FollowedRead followed, Binding binding, CommandObject<?> command, Object value) {
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
