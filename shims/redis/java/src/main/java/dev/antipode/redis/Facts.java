package dev.antipode.redis;

import dev.antipode.shim.Logs;
import java.io.IOException;
import java.util.List;

/**
 * What a server allows and how it is set up, asked once when a client is wrapped (SHIM-3).
 *
 * @param reached whether it answered
 * @param cluster it is part of a Redis Cluster, where data move between histories
 * @param refusal its words, where its user may not ask for positions; else empty
 */
record Facts(boolean reached, boolean cluster, String refusal) {
  /** Nothing is known yet. */
  static final Facts UNKNOWN = new Facts(false, false, "");

  /** Why positions there prove nothing. */
  static final String CLUSTER =
      "is part of a Redis Cluster: slots move between its servers, so a position would not speak of the data any more. "
          + "Antipode does not support it yet";

  private static final String RIGHTS =
      "+info +hget +hmget +hset +hdel +hlen +hgetall +time +eval +evalsha +multi +exec +client|tracking";

  /** Asks a server, and logs once what it lacks. */
  static Facts probe(Session session, String store, String key) throws IOException, ServerError {
    List<Object> answers = session.ask(
        Session.QUESTION, Resp.pack("INFO", "memory"), Resp.pack("INFO", "cluster"));
    String refusal = "";
    if (answers.get(0) instanceof ServerError error) {
      if (List.of("LOADING", "MASTERDOWN", "NOAUTH").contains(error.code())) {
        throw error;
      }
      refusal = error.getMessage();
      Logs.warn(
          "AP506",
          "rights " + store,
          "writes to " + store + " are recorded as incomplete: its user may not ask where they are (" + refusal + "). "
              + grant(key));
    }
    String policy = word(answers.get(1), "maxmemory_policy");
    if (policy.startsWith("allkeys")) {
      Logs.warn(
          "AP508",
          "policy " + store,
          store + " has maxmemory-policy " + policy + ", which may evict the marks in " + key
              + ": older epochs are then unproven. Set a volatile-* policy or noeviction.");
    }
    boolean isCluster = session.cluster() || word(answers.get(2), "cluster_enabled").equals("1");
    return new Facts(true, isCluster, refusal);
  }

  /** The sentence with the exact right. */
  static String grant(String key) {
    return "Grant it: ACL SETUSER <user> " + RIGHTS + " ~" + key;
  }

  private static String word(Object reply, String name) {
    return reply instanceof byte[] octets
        ? Replication.words(Replication.text(octets)).getOrDefault(name, "")
        : "";
  }
}
