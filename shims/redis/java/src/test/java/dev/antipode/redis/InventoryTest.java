package dev.antipode.redis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.antipode.testing.Inventory;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.DatabasePipelineCommands;
import redis.clients.jedis.commands.JedisBinaryCommands;
import redis.clients.jedis.commands.JedisCommands;
import redis.clients.jedis.commands.PipelineBinaryCommands;
import redis.clients.jedis.commands.PipelineCommands;
import redis.clients.jedis.commands.RedisModuleCommands;
import redis.clients.jedis.commands.RedisModulePipelineCommands;
import redis.clients.jedis.commands.SampleBinaryKeyedCommands;
import redis.clients.jedis.commands.SampleKeyedCommands;

/** Every public method of the clients that is no command is known here; commands are known by their words (SHIM-51). */
class InventoryTest {
  private static final String COUNTS = "hotkeysGet hotkeysReset hotkeysStart hotkeysStop";

  @Test
  void jedis() {
    assertThat(Inventory.of(UnifiedJedis.class)
        .without(
            JedisCommands.class,
            JedisBinaryCommands.class,
            SampleKeyedCommands.class,
            SampleBinaryKeyedCommands.class,
            RedisModuleCommands.class)
        .named(
            "a command by its words",
            "executeCommand sendCommand sendBlockingCommand configGet configSet dbSize echo flushAll "
                + "flushDB hsetObject info ping publish slowlogReset " + COUNTS)
        .named(
            "records and waits",
            "multi pipelined transaction scanIteration ftSearchIteration ftAggregateIteration")
        .named("messages that are no data", "subscribe psubscribe")
        .named("neither", "close getCache setDefaultSearchDialect setJsonObjectMapper setKeyArgumentPreProcessor")
        .differences()).isEmpty();
    assertThat(Inventory.of(Pipeline.class)
        .without(
            PipelineCommands.class,
            PipelineBinaryCommands.class,
            DatabasePipelineCommands.class,
            SampleKeyedCommands.class,
            RedisModulePipelineCommands.class)
        .named("a command by its words", "appendCommand executeCommand sendCommand publish time " + COUNTS)
        .named("ends it", "sync syncAndReturnAll close")
        .named("neither", "hasPipelinedResponse setJsonObjectMapper")
        .differences()).isEmpty();
    assertThat(Inventory.of(Transaction.class)
        .without(
            PipelineCommands.class,
            PipelineBinaryCommands.class,
            DatabasePipelineCommands.class,
            SampleKeyedCommands.class,
            RedisModulePipelineCommands.class)
        .named("a command by its words", "executeCommand sendCommand publish watch unwatch " + COUNTS)
        .named("begins or ends it", "multi exec discard clear close")
        .named("neither", "setJsonObjectMapper")
        .differences()).isEmpty();
  }

  @Test
  void lettuce() {
    assertThat(Inventory.of(StatefulRedisConnection.class)
        .named("a command by its words", "dispatch")
        .named("gives what records and waits", "async reactive sync")
        .named("sends what was kept", "flushCommands setAutoFlushCommands")
        .named(
            "neither",
            "addListener close closeAsync getCodec getOptions getResources getTimeout isMulti isOpen "
                + "removeListener setTimeout")
        .differences()).isEmpty();
    assertThat(Inventory.of(RedisCommands.class).without(RedisCommands.class.getInterfaces())
        .named("a command by its words", "select swapdb")
        .named("gives the wrapped one", "getStatefulConnection")
        .differences()).isEmpty();
  }
}
