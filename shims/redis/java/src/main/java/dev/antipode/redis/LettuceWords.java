package dev.antipode.redis;

import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The words of a command as Lettuce holds it; its arguments are encoded only where somebody looks at them. */
final class LettuceWords implements CommandWords {
  private final RedisCommand<?, ?, ?> command;
  private List<byte[]> words;

  LettuceWords(RedisCommand<?, ?, ?> command) {
    this.command = command;
  }

  @Override
  public int size() {
    return words().size();
  }

  @Override
  public byte[] get(int place) {
    return place == 0 ? command.getType().getBytes() : words().get(place);
  }

  private List<byte[]> words() {
    if (words == null) {
      List<byte[]> found = new ArrayList<>();
      found.add(get(0));
      if (command.getArgs() != null) {
        ByteBuf encoded = Unpooled.buffer();
        command.getArgs().encode(encoded);
        while (encoded.isReadable()) {
          found.add(next(encoded));
        }
      }
      words = found;
    }
    return words;
  }

  /** The next argument: {@code $<size>}, and so many octets. */
  private static byte[] next(ByteBuf encoded) {
    int end = encoded.bytesBefore((byte) '\r');
    int size = Integer.parseInt(encoded.toString(encoded.readerIndex() + 1, end - 1, StandardCharsets.US_ASCII));
    byte[] octets = new byte[size];
    encoded.skipBytes(end + 2).readBytes(octets).skipBytes(2);
    return octets;
  }
}
