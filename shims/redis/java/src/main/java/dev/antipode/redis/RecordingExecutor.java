package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import java.time.Duration;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.Connection;
import redis.clients.jedis.executors.CommandExecutor;
import redis.clients.jedis.executors.DefaultCommandExecutor;
import redis.clients.jedis.executors.RetryableCommandExecutor;
import redis.clients.jedis.providers.ConnectionProvider;
import redis.clients.jedis.util.IOUtils;

/** Executes commands as the wrapped client's own executor does, retries and all; writes are recorded, reads can wait. */
final class RecordingExecutor implements CommandExecutor {
  private final CommandExecutor plain;
  private final CommandExecutor recording;
  private final Binding binding;

  private RecordingExecutor(CommandExecutor plain, CommandExecutor recording, Binding binding) {
    this.plain = plain;
    this.recording = recording;
    this.binding = binding;
  }

  /**
   * Like this executor, over these connections.
   *
   * @throws ConfigurationException for an executor that is not Jedis' own
   */
  static RecordingExecutor like(CommandExecutor plain, ConnectionProvider provider, Binding binding) {
    if (plain.getClass() == RetryableCommandExecutor.class) {
      int attempts = JedisTargets.get(RetryableCommandExecutor.class, "maxAttempts", plain);
      Duration total = JedisTargets.get(RetryableCommandExecutor.class, "maxTotalRetriesDuration", plain);
      return new RecordingExecutor(
          new RetryableCommandExecutor(provider, attempts, total), new RetryLoop(provider, attempts, total, binding), binding);
    }
    if (plain.getClass() == DefaultCommandExecutor.class) {
      return new RecordingExecutor(new DefaultCommandExecutor(provider), new SingleAttempt(provider, binding), binding);
    }
    throw new ConfigurationException(
        "AP501",
        "a client that executes by " + plain.getClass().getName() + " cannot be wrapped: want one of a fixed server or "
            + "of Sentinels");
  }

  /** Jedis' own retries, round attempts of ours. */
  private static final class RetryLoop extends RetryableCommandExecutor {
    private final Binding binding;

    RetryLoop(ConnectionProvider provider, int attempts, Duration total, Binding binding) {
      super(provider, attempts, total);
      this.binding = binding;
    }

    @Override
    protected <T> T execute(Connection connection, CommandObject<T> command) {
      return CommandRoundTrip.execute(binding, connection, command, true);
    }
  }

  private record SingleAttempt(ConnectionProvider provider, Binding binding) implements CommandExecutor {
    @Override
    public <T> T executeCommand(CommandObject<T> command) {
      try (Connection connection = provider.getConnection(command.getArguments())) {
        return CommandRoundTrip.execute(binding, connection, command, true);
      }
    }

    @Override
    public void close() {
      IOUtils.closeQuietly(provider);
    }
  }

  @Override
  public <T> T executeCommand(CommandObject<T> command) {
    CommandWords words = new JedisWords(command.getArguments());
    binding.beside().check(words);
    Commands.Kind kind = Commands.classify(words);
    if (kind == Commands.Kind.OTHER) {
      return plain.executeCommand(command);
    }
    if (kind == Commands.Kind.READ) {
      return JedisReads.read(
          binding, command, words, sent -> (sent == command ? plain : recording).executeCommand(sent));
    }
    if (!binding.records()) {
      return unrecorded(command, words);
    }
    WriteCall call = new WriteCall(binding, kind == Commands.Kind.WRITE).with(words);
    try {
      ReadCall read = Commands.mayRead(kind, words) ? ReadCall.of(binding, false) : null;
      return recording.executeCommand(new CommandRoundTrip.RecordedCommand<>(command, call, read));
    } catch (RuntimeException | Error error) {
      CommandRoundTrip.failed(call, error);
      throw error;
    }
  }

  private <T> T unrecorded(CommandObject<T> command, CommandWords words) {
    return binding.beside().concerns(words)
        ? recording.executeCommand(new CommandRoundTrip.RecordedCommand<>(command, null, null))
        : plain.executeCommand(command);
  }

  @Override
  public void close() throws Exception {
    plain.close();
  }
}
