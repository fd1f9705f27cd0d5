package dev.antipode.redis;

import dev.antipode.StoreOptions;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** Jedis, as the tests drive it. */
record JedisTestClient(UnifiedJedis jedis) implements TestClient {
  static JedisTestClient wrap(UnifiedJedis plain, StoreOptions options) {
    return new JedisTestClient(AntipodeRedis.wrap(plain, options));
  }

  private static ProtocolCommand name(Object... words) {
    return () -> words[0].toString().getBytes(StandardCharsets.US_ASCII);
  }

  @Override
  public Object call(Object... words) {
    CommandArguments command = new CommandArguments(name(words));
    for (byte[] each : TestClient.arguments(words)) {
      command.add(each);
    }
    return TestClient.readable(
        jedis.executeCommand(words[0].toString().startsWith("BL") ? command.blocking() : command));
  }

  @Override
  public Batch batch() {
    RecordingPipeline pipeline = (RecordingPipeline) jedis.pipelined();
    return new Batch() {
      @Override
      public Batch add(Object... words) {
        pipeline.sendCommand(name(words), TestClient.arguments(words));
        return this;
      }

      @Override
      public List<Object> send() {
        return pipeline.syncAndReturnAll().stream().map(TestClient::readable).collect(ArrayList::new, List::add, List::addAll);
      }

      @Override
      public void close() {
        pipeline.close();
      }
    };
  }

  @Override
  public Transaction transaction() {
    AbstractTransaction transaction = jedis.transaction(false);
    return new Transaction() {
      @Override
      public void watch(String key) {
        transaction.watch(key);
      }

      @Override
      public Object call(Object... words) {
        Response<Object> response = transaction.sendCommand(name(words), TestClient.arguments(words));
        return TestClient.readable(response.get());
      }

      @Override
      public void multi() {
        transaction.multi();
      }

      @Override
      public void add(Object... words) {
        transaction.sendCommand(name(words), TestClient.arguments(words));
      }

      @Override
      @SuppressWarnings("unchecked") // a list stays one
      public List<Object> exec() {
        return (List<Object>) TestClient.readable(transaction.exec());
      }

      @Override
      public void discard() {
        transaction.discard();
      }

      @Override
      public void close() {
        transaction.close();
      }
    };
  }

  @Override
  public Class<? extends Exception> serverError() {
    return JedisDataException.class;
  }

  @Override
  public Class<? extends Exception> noReply() {
    return JedisConnectionException.class;
  }

  @Override
  public void close() {
    jedis.close();
  }
}
