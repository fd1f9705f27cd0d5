package com.example.postnotification;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Policy;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.redis.AntipodeLettuce;
import dev.antipode.redis.AntipodeRedis;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.UnifiedJedis;

/** How a worker touches its stores: by Jedis, or by futures of Lettuce on connections that threads share. */
final class WorkerClients {
  private static final long PATIENCE_S = 30;

  /** Among a store's servers: the one at which the worker reads, and for which its barriers wait. */
  private static final String HERE = "here";

  /** A wrapped client of one server. */
  private interface Client {
    void set(String key, String value) throws Exception;

    String get(String key) throws Exception;
  }

  private final Setup setup;
  private final Map<String, Map<String, Client>> clients = new HashMap<>();

  WorkerClients(Setup setup) {
    this.setup = setup;
    setup.stores().keySet().forEach(store -> client(store, HERE)); // barriers know every store from the start
  }

  void set(String store, String server, String key, String value) throws Exception {
    client(store, server).set(key, value);
  }

  String get(String store, String key) throws Exception {
    return client(store, HERE).get(key);
  }

  /** Waits for this region; with a deadline of its own, in seconds, it goes on whatever the barrier finds. */
  BarrierResult barrier(Double seconds) throws Exception {
    BarrierOptions options = seconds == null
        ? BarrierOptions.defaults().timeout(setup.timeout())
        : BarrierOptions.defaults()
            .timeout(Duration.ofMillis((long) (seconds * 1000)))
            .onTimeout(Policy.PROCEED)
            .onUnproven(Policy.PROCEED);
    return isAsynchronous() ? Antipode.barrierAsync(options).get() : Antipode.barrier(options);
  }

  private boolean isAsynchronous() {
    return "asynchronous".equals(setup.clients());
  }

  private synchronized Client client(String store, String server) {
    Map<String, String> servers = setup.stores().get(store);
    StoreOptions plain = StoreOptions.named(store).replicas(servers.get(HERE));
    StoreOptions options = "envelope".equals(setup.rest()) ? plain.rest(Rest.ENVELOPE).envelopeKeys("*") : plain;
    return clients
        .computeIfAbsent(store, name -> new HashMap<>())
        .computeIfAbsent(server, name ->
            isAsynchronous() ? lettuce(servers.get(name), options) : jedis(servers.get(name), options));
  }

  private static Client jedis(String url, StoreOptions options) {
    UnifiedJedis jedis = AntipodeRedis.wrap(RedisPosts.connect(url), options);
    return new Client() {
      @Override
      public void set(String key, String value) {
        jedis.set(key, value);
      }

      @Override
      public String get(String key) {
        return jedis.get(key);
      }
    };
  }

  private static Client lettuce(String url, StoreOptions options) {
    RedisAsyncCommands<String, String> redis =
        AntipodeLettuce.wrap(io.lettuce.core.RedisClient.create(url).connect(), options).async();
    return new Client() {
      @Override
      public void set(String key, String value) throws Exception {
        redis.set(key, value).get(PATIENCE_S, TimeUnit.SECONDS);
      }

      @Override
      public String get(String key) throws Exception {
        return redis.get(key).get(PATIENCE_S, TimeUnit.SECONDS);
      }
    };
  }
}
