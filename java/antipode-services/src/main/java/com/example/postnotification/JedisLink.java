package com.example.postnotification;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

/** Jedis, as the adversary plays it. */
final class JedisLink implements AdversaryRedis.Link {
  private final UnifiedJedis jedis;
  private final List<Response<Object>> queued = new ArrayList<>();
  private AbstractPipeline pipeline;
  private AbstractTransaction transaction;

  JedisLink(UnifiedJedis jedis) {
    this.jedis = jedis;
  }

  @Override
  public Object send(String... words) {
    ProtocolCommand command = () -> words[0].getBytes(StandardCharsets.UTF_8);
    String[] rest = Arrays.copyOfRange(words, 1, words.length);
    if (pipeline != null) {
      queued.add(pipeline.sendCommand(command, rest));
      return "queued";
    }
    if (transaction != null) {
      transaction.sendCommand(command, rest);
      return "queued";
    }
    CommandArguments whole = new CommandArguments(command);
    for (String each : rest) {
      whole.add(each);
    }
    return readable(jedis.executeCommand(whole));
  }

  private static Object readable(Object reply) {
    return reply instanceof List<?> list
        ? list.stream().map(JedisLink::readable).toList()
        : reply instanceof byte[] octets ? new String(octets, StandardCharsets.ISO_8859_1) : String.valueOf(reply);
  }

  @Override
  public void pipeline() {
    leave();
    pipeline = jedis.pipelined();
  }

  @Override
  public void transaction(String... watched) {
    leave();
    transaction = jedis.transaction(false);
    if (watched.length > 0) {
      transaction.watch(watched);
    }
    transaction.multi();
  }

  @Override
  public Object execute() {
    try {
      if (transaction != null) {
        return readable(transaction.exec());
      }
      if (pipeline == null) {
        return null;
      }
      pipeline.sync();
      List<Object> replies = new ArrayList<>();
      for (Response<Object> each : queued) {
        replies.add(reply(each));
      }
      return replies;
    } finally {
      leave();
    }
  }

  private static Object reply(Response<Object> response) {
    try {
      return readable(response.get());
    } catch (RuntimeException error) {
      return error;
    }
  }

  @Override
  public Object discard() {
    try {
      return transaction == null ? null : transaction.discard();
    } finally {
      leave();
    }
  }

  /** Closes what is open; a pipeline sends what it holds, a transaction forgets it. */
  private void leave() {
    AbstractPipeline open = pipeline;
    AbstractTransaction begun = transaction;
    pipeline = null;
    transaction = null;
    queued.clear();
    try {
      if (open != null) {
        open.close();
      }
      if (begun != null) {
        begun.close();
      }
    } catch (JedisException lost) {
      // with its connection
    }
  }

  @Override
  public void close() {
    leave();
    jedis.close();
  }
}
