package dev.antipode.spring;

import dev.antipode.ConfigurationException;
import dev.antipode.Mode;
import dev.antipode.OnReplicaOut;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.StoreOptions.OnUnfit;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What {@code antipode.stores.<name>} says: the words of {@link StoreOptions}.
 *
 * @param bean the beans that are this store's clients, of a primary or of replicas; none: this process waits for the replicas
 *     and never reads
 * @param replicas addresses of the servers that readers of this region may use
 * @param timeout the deadline of barriers on this store
 * @param mode its mode
 * @param waitOnRead each read first waits
 * @param hashKeys object keys travel as hashes
 * @param lineageIn lineages are taken from its messages and values
 * @param lineageOut lineages are put beside its messages and values
 * @param onUnfit what happens where it allows no proof
 * @param onReplicaOut what happens where a server does not answer
 * @param rest where lineages rest beside values: {@code field}, {@code envelope}, {@code native} or {@code none}
 * @param envelopeKeys the pattern of the keys whose values are envelopes
 * @param extra what only one kind of store has
 */
record StoreProperties(
    List<String> bean,
    List<String> replicas,
    Duration timeout,
    Mode mode,
    Boolean waitOnRead,
    Boolean hashKeys,
    Boolean lineageIn,
    Boolean lineageOut,
    OnUnfit onUnfit,
    OnReplicaOut onReplicaOut,
    String rest,
    String envelopeKeys,
    Map<String, String> extra) {
  StoreProperties {
    bean = bean == null ? List.of() : List.copyOf(bean);
    replicas = replicas == null ? List.of() : List.copyOf(replicas);
    extra = extra == null ? Map.of() : Map.copyOf(extra);
  }

  /** The same as options; what was not said is left to them. */
  StoreOptions options(String name) {
    StoreOptions options = StoreOptions.named(name);
    options = replicas.isEmpty() ? options : options.replicas(replicas);
    options = timeout == null ? options : options.timeout(timeout);
    options = mode == null ? options : options.mode(mode);
    options = waitOnRead == null ? options : options.waitOnRead(waitOnRead);
    options = hashKeys == null ? options : options.hashKeys(hashKeys);
    options = lineageIn == null ? options : options.lineageIn(lineageIn);
    options = lineageOut == null ? options : options.lineageOut(lineageOut);
    options = onUnfit == null ? options : options.onUnfit(onUnfit);
    options = onReplicaOut == null ? options : options.onReplicaOut(onReplicaOut);
    options = envelopeKeys == null ? options : options.envelopeKeys(envelopeKeys);
    options = rest == null ? options : resting(options, name);
    for (Map.Entry<String, String> word : extra.entrySet()) {
      Object value = switch (word.getValue()) {
        case "true", "false" -> Boolean.valueOf(word.getValue());
        default -> word.getValue();
      };
      options = options.extra(word.getKey(), value);
    }
    return options;
  }

  private StoreOptions resting(StoreOptions options, String name) {
    if (rest.equalsIgnoreCase("none")) {
      return options.restNowhere();
    }
    try {
      return options.rest(Rest.valueOf(rest.toUpperCase(Locale.ROOT)));
    } catch (IllegalArgumentException e) {
      throw new ConfigurationException(
          "AP301", "antipode.stores." + name + ".rest='" + rest + "': want field, envelope, native or none");
    }
  }
}
