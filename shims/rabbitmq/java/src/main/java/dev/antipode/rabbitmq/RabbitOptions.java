package dev.antipode.rabbitmq;

import dev.antipode.Antipode;
import dev.antipode.ConfigurationException;
import dev.antipode.Mode;
import dev.antipode.OnReplicaOut;
import dev.antipode.StoreOptions;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;

/**
 * What {@code wrap} and {@code register} take; immutable.
 *
 * <p>{@code RabbitOptions.named("notifications").track(true).tap("amqp://broker-b/%2F#notifications.tap")}
 */
public final class RabbitOptions {
  private static final Duration DAY = Duration.ofDays(1);

  private final StoreOptions store;
  private final boolean track;
  private final boolean stamped;
  private final OnNoRoom onNoRoom;
  private final Boolean lineageIn;
  private final Boolean lineageOut;
  private final Duration redeliverDelay;

  private RabbitOptions(
      StoreOptions store,
      boolean track,
      boolean stamped,
      OnNoRoom onNoRoom,
      Boolean lineageIn,
      Boolean lineageOut,
      Duration redeliverDelay) {
    this.store = store;
    this.track = track;
    this.stamped = stamped;
    this.onNoRoom = onNoRoom;
    this.lineageIn = lineageIn;
    this.lineageOut = lineageOut;
    this.redeliverDelay = redeliverDelay;
  }

  /** Options of the queue of this logical name, the same in every service and region, as they are by default. */
  public static RabbitOptions named(String name) {
    return new RabbitOptions(StoreOptions.named(name), false, false, OnNoRoom.SEND, null, null, null);
  }

  /**
   * Options that were read from a file or from properties: {@code replicas} are the taps, as texts, and {@code extra} has
   * {@code track} and {@code stamped}.
   *
   * @throws ConfigurationException for an extra that is neither true nor false
   */
  public static RabbitOptions of(StoreOptions said) {
    return new RabbitOptions(
        said,
        isSaid(said, "track"),
        isSaid(said, "stamped"),
        OnNoRoom.SEND,
        said.lineageInOrNull(),
        said.lineageOutOrNull(),
        null);
  }

  private static boolean isSaid(StoreOptions said, String word) {
    Object value = said.extra(word);
    if (value != null && !(value instanceof Boolean)) {
      throw new ConfigurationException("AP501", said.name() + ": " + word + "=" + value + ": want true or false");
    }
    return Boolean.TRUE.equals(value);
  }

  private RabbitOptions with(StoreOptions changed) {
    return new RabbitOptions(changed, track, stamped, onNoRoom, lineageIn, lineageOut, redeliverDelay);
  }

  /** Each message is a write of its own, which can be waited for where the region has a tap (SHIM-17). */
  public RabbitOptions track(boolean value) {
    return new RabbitOptions(store, value, stamped, onNoRoom, lineageIn, lineageOut, redeliverDelay);
  }

  /**
   * The stream queues of this region: each a {@link Tap}, or its text {@code amqp://broker/%2F#queue}. Without, those of
   * {@code ANTIPODE_STORE_<NAME>_REPLICAS}.
   *
   * @throws ConfigurationException for what is no tap
   */
  public RabbitOptions tap(Object... taps) {
    return with(store.replicas(Arrays.stream(taps).map(Tap::of).toArray()));
  }

  /** The stream queues of this region, asked for again every 5 s. */
  public RabbitOptions tap(Supplier<? extends Collection<?>> taps) {
    return with(store.replicas(taps));
  }

  /**
   * Every publisher stamps these messages, also with the empty lineage; one that comes without has lost it, and its scope
   * is incomplete.
   */
  public RabbitOptions stamped(boolean value) {
    return new RabbitOptions(store, track, value, onNoRoom, lineageIn, lineageOut, redeliverDelay);
  }

  /** What happens where a message's headers leave no room for its lineage; by default it is sent without. */
  public RabbitOptions onNoRoom(OnNoRoom value) {
    return new RabbitOptions(store, track, stamped, value, lineageIn, lineageOut, redeliverDelay);
  }

  /** Whether lineages are taken from these messages; where this is not called, as trust says (TRUST-31). */
  public RabbitOptions lineageIn(boolean value) {
    return new RabbitOptions(
        store.lineageIn(value), track, stamped, onNoRoom, value, lineageOut, redeliverDelay);
  }

  /** Whether lineages are given to these messages; where this is not called, as trust says. */
  public RabbitOptions lineageOut(boolean value) {
    return new RabbitOptions(
        store.lineageOut(value), track, stamped, onNoRoom, lineageIn, value, redeliverDelay);
  }

  /**
   * How long a message waits before it goes back to its queue; by default as {@code ANTIPODE_REDELIVER_DELAY_MS} says.
   *
   * @throws ConfigurationException for less than 0, and for a day or more
   */
  public RabbitOptions redeliverDelay(Duration value) {
    if (value == null || value.isNegative() || value.compareTo(DAY) >= 0) {
      throw new ConfigurationException(
          "AP111", "redeliverDelay(" + value + "): want a duration of at least 0 and less than a day");
    }
    return new RabbitOptions(store, track, stamped, onNoRoom, lineageIn, lineageOut, value);
  }

  /** The deadline of barriers on this queue where the call has none (BAR-28). */
  public RabbitOptions timeout(Duration value) {
    return with(store.timeout(value));
  }

  /** The mode of this queue; the most careful of it, the store's variable and the process counts (BAR-49). */
  public RabbitOptions mode(Mode value) {
    return with(store.mode(value));
  }

  /** Whether exchange names travel as hashes (SHIM-21). */
  public RabbitOptions hashKeys(boolean value) {
    return with(store.hashKeys(value));
  }

  /** What happens where a tap cannot be read. */
  public RabbitOptions onUnfit(StoreOptions.OnUnfit value) {
    return with(store.onUnfit(value));
  }

  /** What happens where a tap's broker does not answer. */
  public RabbitOptions onReplicaOut(OnReplicaOut value) {
    return with(store.onReplicaOut(value));
  }

  // What was said

  StoreOptions store() {
    return store;
  }

  boolean track() {
    return track;
  }

  List<Tap> taps() {
    List<Object> said = store.replicas();
    return said == null ? List.of() : said.stream().map(Tap::of).toList();
  }

  boolean stamped() {
    return stamped;
  }

  OnNoRoom onNoRoom() {
    return onNoRoom;
  }

  /** Null where nothing was said: at a declared edge nothing is taken then (TRUST-4). */
  Boolean lineageIn() {
    return lineageIn;
  }

  Boolean lineageOut() {
    return lineageOut;
  }

  Duration redeliverDelay() {
    return redeliverDelay == null ? Antipode.settings().redeliverDelay() : redeliverDelay;
  }
}
