package dev.antipode.redis;

import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * A reply of Lettuce as it came: octets, numbers, truth values, null, lists, errors of type ServerError. It can be given
 * to the output that the application wants later, as if it came just then.
 */
class LettuceReply<K, V, T> extends CommandOutput<K, V, T> {
  private static final Object NO_LIST = new Object(); // RESP 2 has a null of its own for lists

  private final Deque<ReplyList> open = new ArrayDeque<>();
  private Object value;

  LettuceReply(RedisCodec<K, V> codec) {
    super(codec, null);
  }

  /** Several values: an array, a set, a map (its names and values in turn). */
  private static final class ReplyList extends ArrayList<Object> {
    private static final long serialVersionUID = 1L;

    private final char kind;

    ReplyList(char kind, int size) {
      super(size);
      this.kind = kind;
    }

    @Override
    public boolean equals(Object other) {
      return this == other;
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(this);
    }
  }

  private record BigNumber(byte[] digits) {}

  /** The whole reply. */
  Object value() {
    return value == NO_LIST ? null : value;
  }

  /** Forgets what came on a connection that broke. */
  void reset() {
    open.clear();
    value = null;
  }

  private void add(Object each) {
    if (open.isEmpty()) {
      value = each;
    } else {
      open.peek().add(each);
    }
  }

  private static byte[] copy(ByteBuffer octets) {
    if (octets == null) {
      return null;
    }
    byte[] copied = new byte[octets.remaining()];
    octets.duplicate().get(copied);
    return copied;
  }

  @Override
  public void set(ByteBuffer octets) {
    add(copy(octets));
  }

  @Override
  public void set(long number) {
    add(number);
  }

  @Override
  public void set(double number) {
    add(number);
  }

  @Override
  public void set(boolean truth) {
    add(truth);
  }

  @Override
  public void setBigNumber(ByteBuffer octets) {
    add(new BigNumber(copy(octets)));
  }

  @Override
  public void setError(ByteBuffer words) {
    add(new ServerError(decodeString(words)));
  }

  @Override
  public void setError(String words) {
    add(new ServerError(words));
  }

  @Override
  public void multi(int count) {
    begin('*', count, count);
  }

  @Override
  public void multiSet(int count) {
    begin('~', count, count);
  }

  @Override
  public void multiMap(int count) {
    begin('%', count, 2 * count);
  }

  private void begin(char kind, int count, int size) {
    if (count < 0) {
      add(NO_LIST);
    } else {
      open.push(new ReplyList(kind, size));
    }
  }

  @Override
  public void complete(int depth) {
    while (open.size() > depth) {
      add(open.pop());
    }
  }

  /** A list in the place of another one that came: a map stays a map. */
  static Object like(Object came, Object shown) {
    boolean isMap = came instanceof ReplyList many && many.kind == '%';
    if (!isMap || !(shown instanceof List<?> list) || shown instanceof ReplyList || list.size() % 2 != 0) {
      return shown;
    }
    ReplyList map = new ReplyList('%', list.size());
    map.addAll(list);
    return map;
  }

  /** Gives a value to an output, as if it came just then. */
  static void give(Object value, CommandOutput<?, ?, ?> output) {
    give(value, output, 0);
  }

  private static void give(Object value, CommandOutput<?, ?, ?> output, int depth) {
    if (value instanceof List<?> list) {
      char kind = list instanceof ReplyList many ? many.kind : '*';
      switch (kind) {
        case '%' -> output.multiMap(list.size() / 2);
        case '~' -> output.multiSet(list.size());
        default -> output.multiArray(list.size());
      }
      list.forEach(each -> give(each, output, depth + 1));
    } else {
      giveOne(value, output);
    }
    output.complete(depth);
  }

  private static void giveOne(Object value, CommandOutput<?, ?, ?> output) {
    if (value == null) {
      output.set((ByteBuffer) null);
    } else if (value == NO_LIST) {
      output.multiArray(-1);
    } else if (value instanceof byte[] octets) {
      output.set(ByteBuffer.wrap(octets));
    } else if (value instanceof Long number) {
      output.set((long) number);
    } else if (value instanceof Double number) {
      output.set((double) number);
    } else if (value instanceof Boolean truth) {
      output.set((boolean) truth);
    } else if (value instanceof BigNumber number) {
      output.setBigNumber(ByteBuffer.wrap(number.digits()));
    } else if (value instanceof ServerError error) {
      output.setError(ByteBuffer.wrap(error.getMessage().getBytes(StandardCharsets.UTF_8)));
    } else {
      throw new IllegalStateException("no reply: " + value);
    }
  }
}
