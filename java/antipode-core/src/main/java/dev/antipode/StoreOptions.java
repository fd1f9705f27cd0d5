package dev.antipode;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * What {@code wrap} and {@code register} take, the same words for every store; immutable.
 *
 * <p>{@code StoreOptions.named("blog-posts").replicas("redis://b1", "redis://b2").waitOnRead(true)}
 */
public final class StoreOptions {
  /** What a store does where its topology, settings or rights do not allow a proof (SHIM-3). */
  public enum OnUnfit {
    /** {@link UnfitStoreException} at once. */
    RAISE,
    /** The service starts, and entries of the store are unproven. */
    UNPROVEN
  }

  private static final String REPLICAS = "replicas";
  private static final String LISTING = "replicas, as they are now";

  private final String name;
  private final Map<String, Object> said;

  private StoreOptions(String name, Map<String, Object> said) {
    this.name = name;
    this.said = said;
  }

  /** Options of the store of this logical name, as they are by default. */
  public static StoreOptions named(String name) {
    return new StoreOptions(name, Map.of());
  }

  private StoreOptions with(String word, Object value) {
    Map<String, Object> more = new HashMap<>(said);
    more.put(word, value);
    return new StoreOptions(name, more);
  }

  @SuppressWarnings("unchecked") // each word is put by one method, with one type
  private <T> Optional<T> get(String word) {
    return Optional.ofNullable((T) said.get(word));
  }

  /** The store's logical name. */
  public String name() {
    return name;
  }

  /** The servers that readers of this region may use: URLs or clients, or one collection of them (BAR-22). */
  public StoreOptions replicas(Object... servers) {
    boolean isOneList = servers.length == 1 && servers[0] instanceof Collection<?>;
    List<?> named = List.copyOf(isOneList ? (Collection<?>) servers[0] : Arrays.asList(servers));
    if (named.isEmpty()) { // the client's own server would be judged in their place (BAR-53)
      throw new ConfigurationException(
          "AP501",
          "replicas() names no server: name those that readers of this region may use, or leave it out for the client's own");
    }
    return with(REPLICAS, named);
  }

  /** The servers that readers of this region may use, asked for again every 5 s (BAR-22). */
  public StoreOptions replicas(Supplier<? extends Collection<?>> servers) {
    return with(LISTING, servers);
  }

  /** The servers that readers of this region may use, as a list; null where none was said. */
  public List<Object> replicas() {
    return this.<List<Object>>get(REPLICAS).orElse(null);
  }

  /** What tells the servers that readers of this region may use; null where nothing does. */
  public Supplier<? extends Collection<?>> listing() {
    return this.<Supplier<? extends Collection<?>>>get(LISTING).orElse(null);
  }

  /** Each read of the wrapped client first waits for the scope's writes to this store (BAR-50). */
  public StoreOptions waitOnRead(boolean value) {
    return with("wait_on_read", value);
  }

  /** Whether each read first waits. */
  public boolean waitOnRead() {
    return this.<Boolean>get("wait_on_read").orElse(false);
  }

  /** The deadline of barriers on this store where the call has none (BAR-28). */
  public StoreOptions timeout(Duration value) {
    if (value == null) {
      throw new ConfigurationException("AP109", "timeout(null): want a duration from 0 to one hour");
    }
    BarrierOptions.checkTimeout(value);
    return with("timeout", value);
  }

  /** The deadline, or null where none was said. */
  public Duration timeout() {
    return this.<Duration>get("timeout").orElse(null);
  }

  /** Where lineages rest beside values (SHIM-9). */
  public StoreOptions rest(Rest value) {
    return with("rest", Optional.of(value));
  }

  /** No lineage rests beside a value. */
  public StoreOptions restNowhere() {
    return with("rest", Optional.empty());
  }

  /** Where lineages rest, or {@code byDefault} where nothing was said; null for nowhere. */
  public Rest restOr(Rest byDefault) {
    return this.<Optional<Rest>>get("rest").orElse(Optional.ofNullable(byDefault)).orElse(null);
  }

  /** The pattern of the keys whose values are envelopes (SHIM-37). */
  public StoreOptions envelopeKeys(String pattern) {
    return with("envelope_keys", pattern);
  }

  /** The pattern, or null. */
  public String envelopeKeys() {
    return this.<String>get("envelope_keys").orElse(null);
  }

  /** Whether object keys travel as hashes (SHIM-21); as the setting says where this is not called. */
  public StoreOptions hashKeys(boolean value) {
    return with("hash_keys", value);
  }

  /** Whether object keys travel as hashes, or null where nothing was said. */
  public Boolean hashKeys() {
    return this.<Boolean>get("hash_keys").orElse(null);
  }

  /** Whether lineages are taken from this store's messages and values. */
  public StoreOptions lineageIn(boolean value) {
    return with("lineage_in", value);
  }

  /** Whether lineages are taken from it. */
  public boolean lineageIn() {
    return this.<Boolean>get("lineage_in").orElse(true);
  }

  /** The same, or null where nothing was said: for messages, trust says then (TRUST-31). */
  public Boolean lineageInOrNull() {
    return this.<Boolean>get("lineage_in").orElse(null);
  }

  /** Whether lineages are put beside this store's messages and values. */
  public StoreOptions lineageOut(boolean value) {
    return with("lineage_out", value);
  }

  /** Whether lineages are put there. */
  public boolean lineageOut() {
    return this.<Boolean>get("lineage_out").orElse(true);
  }

  /** The same, or null where nothing was said. */
  public Boolean lineageOutOrNull() {
    return this.<Boolean>get("lineage_out").orElse(null);
  }

  /** What happens where the store does not allow a proof. */
  public StoreOptions onUnfit(OnUnfit value) {
    return with("on_unfit", value);
  }

  /** What happens where the store does not allow a proof. */
  public OnUnfit onUnfit() {
    return this.<OnUnfit>get("on_unfit").orElse(OnUnfit.RAISE);
  }

  /** What happens where a server does not answer; as the setting says where this is not called. */
  public StoreOptions onReplicaOut(OnReplicaOut value) {
    return with("on_replica_out", value);
  }

  /** What happens where a server does not answer, or null where nothing was said. */
  public OnReplicaOut onReplicaOut() {
    return this.<OnReplicaOut>get("on_replica_out").orElse(null);
  }

  /** The mode of this store; the most careful of it, the store's variable and the process counts (BAR-49). */
  public StoreOptions mode(Mode value) {
    return with("mode", value);
  }

  /** The mode, or null where none was said. */
  public Mode mode() {
    return this.<Mode>get("mode").orElse(null);
  }

  /** What only one kind of store has. */
  public StoreOptions extra(String word, Object value) {
    return with("extra " + word, value);
  }

  /** What only one kind of store has, or null. */
  public Object extra(String word) {
    return said.get("extra " + word);
  }

  /** The options of several wraps of one store: the later says what it says, the rest stays; servers are not options. */
  public StoreOptions joinedWith(StoreOptions later) {
    Map<String, Object> joined = new HashMap<>(said);
    joined.putAll(later.said);
    joined.remove(REPLICAS);
    joined.remove(LISTING);
    return new StoreOptions(name, joined);
  }
}
