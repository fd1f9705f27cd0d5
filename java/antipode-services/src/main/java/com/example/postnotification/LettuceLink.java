package com.example.postnotification;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ObjectOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.resource.ClientResources;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Lettuce, as the adversary plays it: a pipeline is a batch that is flushed by hand. */
final class LettuceLink implements AdversaryRedis.Link {
  static final ClientResources RESOURCES = ClientResources.create();
  private static final long PATIENCE_S = 20;

  private record Name(byte[] getBytes, String word) implements ProtocolKeyword {
    @Override
    public byte[] getBytes() {
      return getBytes;
    }

    @Override
    public String toString() {
      return word;
    }
  }

  private final RedisClient client;
  private final StatefulRedisConnection<String, String> connection;
  private final List<RedisFuture<Object>> queued = new ArrayList<>();
  private boolean isBatch;
  private boolean isTransaction;

  LettuceLink(RedisClient client, StatefulRedisConnection<String, String> connection) {
    this.client = client;
    this.connection = connection;
  }

  @Override
  public Object send(String... words) throws Exception {
    CommandArgs<String, String> rest = new CommandArgs<>(StringCodec.UTF8);
    for (int place = 1; place < words.length; place++) {
      rest.add(words[place]);
    }
    Name name = new Name(words[0].getBytes(StandardCharsets.UTF_8), words[0]);
    RedisFuture<Object> future = connection.async().dispatch(name, new ObjectOutput<>(StringCodec.UTF8), rest);
    if (isBatch || isTransaction) {
      queued.add(future);
      return "queued";
    }
    return get(future);
  }

  private static Object get(RedisFuture<?> future) throws Exception {
    try {
      return future.get(PATIENCE_S, TimeUnit.SECONDS);
    } catch (ExecutionException error) {
      throw error.getCause() instanceof Exception cause ? cause : error;
    }
  }

  @Override
  public void pipeline() {
    leave();
    connection.setAutoFlushCommands(false);
    isBatch = true;
  }

  @Override
  public void transaction(String... watched) {
    leave();
    if (watched.length > 0) {
      connection.sync().watch(watched);
    }
    connection.sync().multi();
    isTransaction = true;
  }

  @Override
  public Object execute() throws Exception {
    try {
      if (isTransaction) {
        isTransaction = false;
        TransactionResult result = (TransactionResult) get(connection.async().exec());
        return result.wasDiscarded() ? "discarded" : result.stream().toList();
      }
      if (!isBatch) {
        return null;
      }
      connection.flushCommands();
      List<Object> replies = new ArrayList<>();
      for (RedisFuture<Object> each : queued) {
        replies.add(reply(each));
      }
      return replies;
    } finally {
      leave();
    }
  }

  private static Object reply(RedisFuture<Object> future) {
    try {
      return get(future);
    } catch (Exception error) {
      return error;
    }
  }

  @Override
  public Object discard() throws Exception {
    try {
      if (!isTransaction) {
        return null;
      }
      isTransaction = false;
      return get(connection.async().discard());
    } finally {
      leave();
    }
  }

  /** A batch that was not flushed is, and a transaction is discarded: the connection stays. */
  private void leave() {
    try {
      if (isBatch) {
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
      }
      if (isTransaction) {
        connection.sync().discard();
      }
    } catch (RedisException lost) {
      // with the connection
    }
    isBatch = false;
    isTransaction = false;
    queued.clear();
  }

  @Override
  public void close() {
    leave();
    connection.close();
    client.shutdown(0, 2, TimeUnit.SECONDS);
  }
}
