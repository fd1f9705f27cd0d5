package dev.antipode;

import dev.antipode.shim.Setting;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Every setting of the process, as one immutable value (chapter CONF of the specification).
 *
 * <p>{@link Antipode#settings()} gives those in force. {@link Antipode#configure} takes what code says:
 *
 * <pre>{@code
 * Antipode.configure(Settings.defaults().region("b").timeout(Duration.ofMillis(500)));
 * }</pre>
 *
 * <p>A setting that is not named there keeps what code has said before, or comes from its variable, or is the default. A
 * value out of bounds throws {@link ConfigurationException} at once, with what is wanted.
 */
public final class Settings {
  private static final Settings DEFAULTS = new Settings(new Object[Setting.values().length]);
  private static final Object TAKEN_BACK = new Object();

  private final Object[] said; // by the ordinal of the setting; null: nothing was said

  private Settings(Object[] said) {
    this.said = said;
  }

  /** Nothing is said: all are the defaults. */
  public static Settings defaults() {
    return DEFAULTS;
  }

  /** These settings with one more said, already checked; null takes back what was said here. */
  public Settings with(Setting setting, Object value) {
    Object[] more = said.clone();
    more[setting.ordinal()] = value == null ? null : setting.check(value);
    return new Settings(more);
  }

  /** For {@link Antipode#configure}: what code said before of this setting holds no more. */
  public Settings unset(Setting setting) {
    Object[] more = said.clone();
    more[setting.ordinal()] = TAKEN_BACK;
    return new Settings(more);
  }

  /** What is said of a setting, or null. */
  public Object said(Setting setting) {
    Object value = said[setting.ordinal()];
    return value == TAKEN_BACK ? null : value;
  }

  /** These settings, and over them what others say. */
  public Settings overlaid(Settings others) {
    Object[] more = said.clone();
    for (int place = 0; place < more.length; place++) {
      Object other = others.said[place];
      if (other != null) {
        more[place] = other == TAKEN_BACK ? null : other;
      }
    }
    return new Settings(more);
  }

  private Object get(Setting setting) {
    Object value = said(setting);
    return value == null ? setting.initial() : value;
  }

  @SuppressWarnings("unchecked") // Setting.check has seen to it
  private List<String> names(Setting setting) {
    return (List<String>) get(setting);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Settings settings && Arrays.equals(said, settings.said);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(said);
  }

  /** What barriers do (BAR-48, PROP-26). */
  public Mode mode() {
    return (Mode) get(Setting.MODE);
  }

  /** These settings with another {@link #mode()}. */
  public Settings mode(Mode mode) {
    return with(Setting.MODE, mode);
  }

  /** This region's name in records, spans and metrics. */
  public String region() {
    return (String) get(Setting.REGION);
  }

  /** These settings with another {@link #region()}. */
  public Settings region(String region) {
    return with(Setting.REGION, region);
  }

  /** The deadline of a barrier. */
  public Duration timeout() {
    return (Duration) get(Setting.TIMEOUT);
  }

  /** These settings with another {@link #timeout()}. */
  public Settings timeout(Duration timeout) {
    return with(Setting.TIMEOUT, timeout);
  }

  /** What happens when the deadline has passed. */
  public Policy onTimeout() {
    return (Policy) get(Setting.ON_TIMEOUT);
  }

  /** These settings with another {@link #onTimeout()}. */
  public Settings onTimeout(Policy onTimeout) {
    return with(Setting.ON_TIMEOUT, onTimeout);
  }

  /** What happens where no proof is possible. */
  public Policy onUnproven() {
    return (Policy) get(Setting.ON_UNPROVEN);
  }

  /** These settings with another {@link #onUnproven()}. */
  public Settings onUnproven(Policy onUnproven) {
    return with(Setting.ON_UNPROVEN, onUnproven);
  }

  /** What happens where a barrier had entries and could judge none. */
  public Policy onVacuous() {
    return (Policy) get(Setting.ON_VACUOUS);
  }

  /** These settings with another {@link #onVacuous()}. */
  public Settings onVacuous(Policy onVacuous) {
    return with(Setting.ON_VACUOUS, onVacuous);
  }

  /** Stores that this process will wait for. */
  public List<String> stores() {
    return names(Setting.STORES);
  }

  /** These settings with another {@link #stores()}. */
  public Settings stores(List<String> stores) {
    return with(Setting.STORES, stores);
  }

  /** How long a message waits before it goes back. */
  public Duration redeliverDelay() {
    return (Duration) get(Setting.REDELIVER_DELAY);
  }

  /** These settings with another {@link #redeliverDelay()}. */
  public Settings redeliverDelay(Duration redeliverDelay) {
    return with(Setting.REDELIVER_DELAY, redeliverDelay);
  }

  /** What happens where a lineage leaves while a write is pending (SCOPE-19). */
  public OnPending onPending() {
    return (OnPending) get(Setting.ON_PENDING);
  }

  /** These settings with another {@link #onPending()}. */
  public Settings onPending(OnPending onPending) {
    return with(Setting.ON_PENDING, onPending);
  }

  /** Whose lineages are taken (TRUST-2). */
  public Trust trust() {
    return (Trust) get(Setting.TRUST);
  }

  /** These settings with another {@link #trust()}. */
  public Settings trust(Trust trust) {
    return with(Setting.TRUST, trust);
  }

  /** Whether the outside can reach this service (TRUST-4). */
  public boolean edge() {
    return (Boolean) get(Setting.EDGE);
  }

  /** These settings with another {@link #edge()}. */
  public Settings edge(boolean edge) {
    return with(Setting.EDGE, edge);
  }

  /** Whether forwarding headers are judged (TRUST-13). */
  public Forwarded forwarded() {
    return (Forwarded) get(Setting.FORWARDED);
  }

  /** These settings with another {@link #forwarded()}. */
  public Settings forwarded(Forwarded forwarded) {
    return with(Setting.FORWARDED, forwarded);
  }

  /** Hosts that lineages may go to, beside those inside (TRUST-16). */
  public List<String> peers() {
    return names(Setting.PEERS);
  }

  /** These settings with another {@link #peers()}. */
  public Settings peers(List<String> peers) {
    return with(Setting.PEERS, peers);
  }

  /** The file of the seal keys (TRUST-22); setting it means {@code trust=key}. */
  public String keysFile() {
    return (String) get(Setting.KEYS_FILE);
  }

  /** These settings with another {@link #keysFile()}. */
  public Settings keysFile(String keysFile) {
    return with(Setting.KEYS_FILE, keysFile);
  }

  /** The seal keys themselves. */
  public Keys keys() {
    return (Keys) get(Setting.KEYS);
  }

  /** These settings with another {@link #keys()}. */
  public Settings keys(Keys keys) {
    return with(Setting.KEYS, keys);
  }

  /** Return whether a request without a peer came by a Unix socket (TRUST-9). */
  public boolean trustUnix() {
    return (Boolean) get(Setting.TRUST_UNIX);
  }

  /** These settings with another {@link #trustUnix()}. */
  public Settings trustUnix(boolean trustUnix) {
    return with(Setting.TRUST_UNIX, trustUnix);
  }

  /** Return how long a seal of a message or value holds; zero: as long as its key is known (TRUST-21). */
  public Duration sealRestTtl() {
    return (Duration) get(Setting.SEAL_REST_TTL);
  }

  /** These settings with another {@link #sealRestTtl()}. */
  public Settings sealRestTtl(Duration sealRestTtl) {
    return with(Setting.SEAL_REST_TTL, sealRestTtl);
  }

  /** Return how long a seal of a request or response holds (TRUST-21). */
  public Duration sealTtl() {
    return (Duration) get(Setting.SEAL_TTL);
  }

  /** These settings with another {@link #sealTtl()}. */
  public Settings sealTtl(Duration sealTtl) {
    return with(Setting.SEAL_TTL, sealTtl);
  }

  /** Size of an injected lineage, in bytes (WIRE-32). */
  public int budgetBytes() {
    return (Integer) get(Setting.BUDGET_BYTES);
  }

  /** These settings with another {@link #budgetBytes()}. */
  public Settings budgetBytes(int budgetBytes) {
    return with(Setting.BUDGET_BYTES, budgetBytes);
  }

  /** Whether object keys travel as hashes (WIRE-18). */
  public boolean hashKeys() {
    return (Boolean) get(Setting.HASH_KEYS);
  }

  /** These settings with another {@link #hashKeys()}. */
  public Settings hashKeys(boolean hashKeys) {
    return with(Setting.HASH_KEYS, hashKeys);
  }

  /** Whether each read through a shim transfers the lineage at rest. */
  public boolean autoMerge() {
    return (Boolean) get(Setting.AUTO_MERGE);
  }

  /** These settings with another {@link #autoMerge()}. */
  public Settings autoMerge(boolean autoMerge) {
    return with(Setting.AUTO_MERGE, autoMerge);
  }

  /** Parked threads, a store and process. */
  public int maxWaiters() {
    return (Integer) get(Setting.MAX_WAITERS);
  }

  /** These settings with another {@link #maxWaiters()}. */
  public Settings maxWaiters(int maxWaiters) {
    return with(Setting.MAX_WAITERS, maxWaiters);
  }

  /** Parked futures and callbacks, a store and process. */
  public int maxTasks() {
    return (Integer) get(Setting.MAX_TASKS);
  }

  /** These settings with another {@link #maxTasks()}. */
  public Settings maxTasks(int maxTasks) {
    return with(Setting.MAX_TASKS, maxTasks);
  }

  /** After how long a server that does not answer is left out (BAR-26). */
  public Duration replicaOutAfter() {
    return (Duration) get(Setting.REPLICA_OUT_AFTER);
  }

  /**
   * Return how old the connection to a server may grow while barriers come, which is then made anew: its address may lead to
   * another server by then (BAR-55).
   */
  public Duration reconnect() {
    return (Duration) get(Setting.RECONNECT);
  }

  /** These settings with another {@link #reconnect()}. */
  public Settings reconnect(Duration reconnect) {
    return with(Setting.RECONNECT, reconnect);
  }

  /** Return how long a server that discovery took away is named as left out: a connection may still lead there (BAR-54). */
  public Duration leftServer() {
    return (Duration) get(Setting.LEFT_SERVER);
  }

  /** These settings with another {@link #leftServer()}. */
  public Settings leftServer(Duration leftServer) {
    return with(Setting.LEFT_SERVER, leftServer);
  }

  /** These settings with another {@link #replicaOutAfter()}. */
  public Settings replicaOutAfter(Duration replicaOutAfter) {
    return with(Setting.REPLICA_OUT_AFTER, replicaOutAfter);
  }

  /** What a server that is left out means (BAR-26). */
  public OnReplicaOut onReplicaOut() {
    return (OnReplicaOut) get(Setting.ON_REPLICA_OUT);
  }

  /** These settings with another {@link #onReplicaOut()}. */
  public Settings onReplicaOut(OnReplicaOut onReplicaOut) {
    return with(Setting.ON_REPLICA_OUT, onReplicaOut);
  }

  /** Fallbacks at once, a process. */
  public int maxFallbacks() {
    return (Integer) get(Setting.MAX_FALLBACKS);
  }

  /** These settings with another {@link #maxFallbacks()}. */
  public Settings maxFallbacks(int maxFallbacks) {
    return with(Setting.MAX_FALLBACKS, maxFallbacks);
  }

  /** How long a watermark without a live push is believed (BAR-34). */
  public Duration freePathTtl() {
    return (Duration) get(Setting.FREE_PATH_TTL);
  }

  /** These settings with another {@link #freePathTtl()}. */
  public Settings freePathTtl(Duration freePathTtl) {
    return with(Setting.FREE_PATH_TTL, freePathTtl);
  }

  /** The shortest poll interval. */
  public Duration poll() {
    return (Duration) get(Setting.POLL);
  }

  /** These settings with another {@link #poll()}. */
  public Settings poll(Duration poll) {
    return with(Setting.POLL, poll);
  }

  /** The life of a user's session lineage. */
  public Duration sessionTtl() {
    return (Duration) get(Setting.SESSION_TTL);
  }

  /** These settings with another {@link #sessionTtl()}. */
  public Settings sessionTtl(Duration sessionTtl) {
    return with(Setting.SESSION_TTL, sessionTtl);
  }

  /** The folder for dry-run records. */
  public String records() {
    return (String) get(Setting.RECORDS);
  }

  /** These settings with another {@link #records()}. */
  public Settings records(String records) {
    return with(Setting.RECORDS, records);
  }

  /** Size of a file of records before rotation, in MiB. */
  public int recordsMaxMib() {
    return (Integer) get(Setting.RECORDS_MAX_MIB);
  }

  /** These settings with another {@link #recordsMaxMib()}. */
  public Settings recordsMaxMib(int recordsMaxMib) {
    return with(Setting.RECORDS_MAX_MIB, recordsMaxMib);
  }

  /** Bound of the folder of records, and of that of histories, in MiB (REC-25). */
  public int recordsFolderMib() {
    return (Integer) get(Setting.RECORDS_FOLDER_MIB);
  }

  /** These settings with another {@link #recordsFolderMib()}. */
  public Settings recordsFolderMib(int recordsFolderMib) {
    return with(Setting.RECORDS_FOLDER_MIB, recordsFolderMib);
  }

  /** The share of reads that dry-run follows, 0 to 1. */
  public double sample() {
    return (Double) get(Setting.SAMPLE);
  }

  /** These settings with another {@link #sample()}. */
  public Settings sample(double sample) {
    return with(Setting.SAMPLE, sample);
  }

  /** Whether dry-run repeats reads to confirm that they were stale. */
  public boolean repeatReads() {
    return (Boolean) get(Setting.REPEAT_READS);
  }

  /** These settings with another {@link #repeatReads()}. */
  public Settings repeatReads(boolean repeatReads) {
    return with(Setting.REPEAT_READS, repeatReads);
  }

  /** The folder of the history recorder; empty is off. */
  public String history() {
    return (String) get(Setting.HISTORY);
  }

  /** These settings with another {@link #history()}. */
  public Settings history(String history) {
    return with(Setting.HISTORY, history);
  }

  /** These settings with other {@link #stores()}. */
  public Settings stores(String... stores) {
    return stores(List.of(stores));
  }

  /** These settings with other {@link #peers()}. */
  public Settings peers(String... peers) {
    return peers(List.of(peers));
  }
}
