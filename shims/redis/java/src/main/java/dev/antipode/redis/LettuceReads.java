package dev.antipode.redis;

import dev.antipode.shim.FollowedRead;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.CommandWrapper;
import io.lettuce.core.protocol.CompleteableCommand;
import io.lettuce.core.protocol.RedisCommand;
import java.util.List;
import java.util.function.BiConsumer;

/** Reads by Lettuce that dry-run follows (REC-12): the values of a MULTI come with its EXEC. */
final class LettuceReads {
  private LettuceReads() {}

  /** A read is issued, in the context in which its scope is current. */
  static <K, V, T> void follow(Binding binding, RedisCommand<K, V, T> command, Words words, RedisCodec<K, V> codec) {
    if (!binding.follows()
        || Commands.classify(words) != Commands.Kind.READ
        || !(command instanceof CompleteableCommand<?> future)) {
      return;
    }
    FollowedRead followed = FollowedRead.of(binding.store());
    if (followed == null) {
      return;
    }
    AsyncCommand<?, ?, ?> plain = CommandWrapper.unwrap(command, AsyncCommand.class);
    Class<?> output = command.getOutput() == null ? null : command.getOutput().getClass();
    List<byte[]> sent = plain != null && output != null && Repeating.mayRepeat(binding, words) ? copy(words) : null;
    BiConsumer<Object, Throwable> over = (value, error) -> {
      if (error == null && sent == null) {
        followed.over(binding.server());
      } else if (error == null) {
        followed.over(
            binding.server(),
            () -> value,
            () -> Repeating.again(binding, Words.of(sent), reply -> built(reply, output, codec)));
      }
    };
    future.onComplete(over);
  }

  private static List<byte[]> copy(Words words) {
    return words.copy().stream().map(byte[]::clone).toList();
  }

  /** A reply as another output of this kind makes it; throws for one that is made by more than a codec. */
  private static Object built(Object reply, Class<?> kind, RedisCodec<?, ?> codec) throws ReflectiveOperationException {
    CommandOutput<?, ?, ?> output = (CommandOutput<?, ?, ?>) kind.getConstructor(RedisCodec.class).newInstance(codec);
    LettuceReply.give(reply, output);
    return output.get();
  }
}
