package com.example.postnotification;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.StoreOptions;
import dev.antipode.redis.AntipodeLettuce;
import dev.antipode.redis.AntipodeRedis;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisException;
import java.net.URI;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisException;

/** Jedis and Lettuce, as the adversary plays them; the library of functions and the watched keys are the Python stage's. */
final class AdversaryRedis implements Ways.Store {
  private static final String ROW = "{}";
  private static final String SET = "return redis.call('SET', KEYS[1], 's')";
  private static final String SET_AND_FAIL = "redis.call('SET', KEYS[1], 's'); return redis.call('NO SUCH COMMAND')";
  private static final String EXISTS = "return redis.call('EXISTS', KEYS[1])";

  private final String name;
  private final String primary;
  private final String replica;

  AdversaryRedis(JsonNode setup) {
    name = setup.get("store").asText();
    primary = setup.get("primary").asText();
    replica = setup.get("replica").asText();
  }

  /** A client of either library: commands go to what is open on it, a pipeline or a transaction, else they are sent. */
  interface Link extends AutoCloseable {
    Object send(String... words) throws Exception;

    void pipeline();

    /** Opens a transaction, behind WATCH of these keys. */
    void transaction(String... watched);

    /** Ends what is open; its replies. */
    Object execute() throws Exception;

    Object discard() throws Exception;

    @Override
    void close();
  }

  private record Client(Link[] link, boolean isJedis, boolean isPlain) implements Ways.Client {
    Link now() {
      return link[0];
    }

    @Override
    public void close() {
      Arrays.stream(link).forEach(Link::close);
    }
  }

  private Link link(String url, boolean isJedis, boolean isPlain, boolean waits) {
    StoreOptions options = StoreOptions.named(name).replicas(replica).waitOnRead(waits);
    if (isJedis) {
      UnifiedJedis plain = RedisClient.create(URI.create(url));
      return new JedisLink(isPlain ? plain : AntipodeRedis.wrap(plain, options));
    }
    io.lettuce.core.RedisClient client = io.lettuce.core.RedisClient.create(LettuceLink.RESOURCES, url);
    client.setOptions(ClientOptions.builder().autoReconnect(false).build());
    var plain = client.connect();
    return new LettuceLink(client, isPlain ? plain : AntipodeLettuce.wrap(plain, options));
  }

  @Override
  public Ways.Client open(int kind, boolean plain) {
    boolean isJedis = kind % 2 == 0;
    Client client = new Client(new Link[] {link(primary, isJedis, plain, false)}, isJedis, plain);
    if (kind / 2 % 3 == 1) {
      client.now().pipeline();
    } else if (kind / 2 % 3 == 2) {
      client.now().transaction();
    }
    return client;
  }

  @Override
  public Ways.Client reader() {
    return new Client(new Link[] {link(replica, true, false, true), link(replica, false, false, true)}, true, false);
  }

  @Override
  public boolean isOwn(Throwable error) {
    return error instanceof JedisException
        || error instanceof RedisException
        || error instanceof ClosedChannelException
        || error instanceof IllegalStateException;
  }

  @Override
  public Map<String, Ways.Way<Ways.Client>> of(String kind) {
    return switch (kind) {
      case "write" -> WRITES;
      case "act" -> ACTS;
      default -> READS;
    };
  }

  private static String[] with(String row, String... words) {
    return Arrays.stream(words).map(word -> word.equals(ROW) ? row : word).toArray(String[]::new);
  }

  private static Ways.Way<Client> sending(String... words) {
    return (client, row) -> client.now().send(with(row, words));
  }

  /** Commands in a pipeline of their own; what was open is executed before. */
  private static Ways.Way<Client> together(String[]... commands) {
    return (client, row) -> {
      List<Object> gave = new ArrayList<>();
      gave.add(client.now().execute());
      client.now().pipeline();
      for (String[] words : commands) {
        gave.add(client.now().send(with(row, words)));
      }
      gave.add(client.now().execute());
      return gave;
    };
  }

  private static Ways.Way<Client> transaction(List<String> watched, String[]... commands) {
    return (client, row) -> {
      List<Object> gave = new ArrayList<>();
      gave.add(client.now().execute());
      client.now().transaction(watched.toArray(String[]::new));
      for (String[] words : commands) {
        gave.add(client.now().send(with(row, words)));
      }
      gave.add(client.now().execute());
      return gave;
    };
  }

  private static String[] words(String... words) {
    return words;
  }

  private static final String[] PUT = words("SET", ROW, "p");
  private static final String[] WRONG = words("LPUSH", ROW, "1");
  private static final String[] GET = words("GET", ROW);

  private static final Map<String, Ways.Way<Ways.Client>> WRITES = new Ways.Table<>(Client.class)
      .add("set", sending("SET", ROW, "v"))
      .add("set with options", sending("SET", ROW, "v", "PX", "600000", "NX"))
      .add("mset", sending("MSET", ROW, "v"))
      .add("append", sending("APPEND", ROW, "v"))
      .add("increment", sending("INCR", ROW))
      .add("hash", sending("HSET", ROW, "f", "v"))
      .add("list", sending("RPUSH", ROW, "v"))
      .add("sorted set", sending("ZADD", ROW, "1", "v"))
      .add("stream", sending("XADD", ROW, "*", "f", "v"))
      .add("bit", sending("SETBIT", ROW, "3", "1"))
      .add("hyperloglog", sending("PFADD", ROW, "v"))
      .add("copy", sending("COPY", "source", ROW))
      .add("sort and store", sending("SORT", "numbers", "STORE", ROW))
      .add("command of several words", sending("BITFIELD", ROW, "SET", "u8", "0", "255"))
      .add("command in small letters", sending("getset", ROW, "v"))
      .add("script", sending("EVAL", SET, "1", ROW))
      .add("script that fails", sending("EVAL", SET_AND_FAIL, "1", ROW))
      .add("function", sending("FCALL", "put", "1", ROW))
      .add("pipeline", together(GET, PUT, GET))
      .add("pipeline that fails", together(PUT, WRONG))
      .add("pipeline of a failing script", together(words("EVAL", SET_AND_FAIL, "1", ROW)))
      .add("transaction", transaction(List.of(), PUT))
      .add("transaction that fails", transaction(List.of(), PUT, WRONG))
      .add("transaction that is refused", transaction(List.of(), PUT, words("NO SUCH COMMAND")))
      .add("transaction behind a watch", transaction(List.of("watched"), GET, PUT))
      .all();

  private final Map<String, Ways.Way<Ways.Client>> ACTS = new Ways.Table<>(Client.class)
      .add("open a pipeline", act(Link::pipeline))
      .add("open a transaction", act(link -> link.transaction()))
      .add("open a transaction behind a watch", act(link -> link.transaction("watched")))
      .add("execute", (client, row) -> client.now().execute())
      .add("discard", (client, row) -> client.now().discard())
      .add("read", sending("EXISTS", "source"))
      .add("error", sending("LPUSH", "source", "1"))
      .add("new client", (client, row) -> renew(client))
      .all();

  private Object renew(Client client) {
    client.now().close();
    client.link[0] = link(primary, client.isJedis, client.isPlain, false);
    return null;
  }

  @FunctionalInterface
  private interface Act {
    void on(Link link) throws Exception;
  }

  private static Ways.Way<Client> act(Act act) {
    return (client, row) -> {
      act.on(client.now());
      return null;
    };
  }

  /** By both libraries in turn: a reader has a client of each. */
  private static void read(Ways.Table<Client> table, String name, String found, String... words) {
    for (int number = 0; number < 2; number++) {
      int which = number;
      String library = number == 0 ? "Jedis" : "Lettuce";
      table.add(name + ", " + library, (client, row) ->
          shows(client.link[which].send(with(row, words)), found, row));
      table.add(name + " in a pipeline, " + library, (client, row) -> {
        client.link[which].pipeline();
        client.link[which].send(with(row, words));
        return shows(client.link[which].execute(), found, row);
      });
      table.add(name + " in a transaction, " + library, (client, row) -> {
        client.link[which].transaction();
        client.link[which].send(with(row, words));
        return shows(client.link[which].execute(), found, row);
      });
    }
  }

  private static Object shows(Object reply, String found, String row) throws Exception {
    if (reply instanceof List<?> list) {
      for (Object each : list) {
        if (each instanceof Exception error) {
          throw error;
        }
      }
    }
    return Adversary.told(reply).contains(found.equals(ROW) ? row : found);
  }

  private static final Map<String, Ways.Way<Ways.Client>> READS = reads();

  private static Map<String, Ways.Way<Ways.Client>> reads() {
    Ways.Table<Client> table = new Ways.Table<>(Client.class);
    read(table, "exists", "1", "EXISTS", ROW);
    read(table, "keys", ROW, "KEYS", ROW);
    read(table, "script", "1", "EVAL_RO", EXISTS, "1", ROW);
    read(table, "script that may write", "1", "EVAL", EXISTS, "1", ROW);
    read(table, "function", "1", "FCALL_RO", "look", "1", ROW);
    return table.all();
  }
}
