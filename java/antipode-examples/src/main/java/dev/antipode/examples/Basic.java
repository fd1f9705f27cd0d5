package dev.antipode.examples;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.BarrierResult;
import dev.antipode.Policy;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import java.time.Duration;
import java.util.stream.Collectors;

/**
 * The smallest thing that Antipode does, on the store that is built in: no server, no configuration.
 *
 * <pre>
 * mvn -q -f java/pom.xml -pl antipode-examples -am package -DskipTests
 * java -cp java/antipode-examples/target/antipode-examples.jar dev.antipode.examples.Basic
 * </pre>
 *
 * <p>prints
 *
 * <pre>
 * without a barrier: nothing
 * with a barrier:    Hello
 * what it proved:    blog-posts visible
 * too little time:   blog-posts timed_out
 * </pre>
 */
public final class Basic {
  // A store in two regions. What is written in a arrives in b half a second later.
  private static final MemoryStore POSTS = MemoryStore.named("blog-posts").lag(Duration.ofMillis(500));
  private static final MemoryClient POSTS_A = POSTS.client("a");
  private static final MemoryClient POSTS_B = POSTS.client("b");

  private Basic() {}

  private static String shown(String body) {
    return body == null ? "nothing" : body;
  }

  private static String verdicts(BarrierResult result) {
    return result.stores().entrySet().stream()
        .map(store -> store.getKey() + " " + store.getValue().verdict())
        .collect(Collectors.joining(" "));
  }

  /** Writes in one region, and reads in the other. */
  public static void main(String[] arguments) {
    String message;
    try (var scope = Antipode.scope()) { // a filter opens one for each request
      POSTS_A.set("post:42", "Hello"); // the write joins the request's lineage
      message = Antipode.serialize(); // the lineage as text; clients and queues carry it along by themselves
    }

    try (var scope = Antipode.messageScope(message)) { // somebody in region b was told
      System.out.println("without a barrier: " + shown(POSTS_B.get("post:42")));

      var options = BarrierOptions.defaults();
      BarrierResult result = Antipode.barrier(options.timeout(Duration.ofSeconds(5))); // waits, or says why not
      System.out.println("with a barrier:    " + shown(POSTS_B.get("post:42")));
      System.out.println("what it proved:    " + verdicts(result));

      POSTS_A.set("post:43", "Again");
      // By default it throws BarrierTimeoutException.
      result = Antipode.barrier(options.timeout(Duration.ofMillis(10)).onTimeout(Policy.PROCEED));
      System.out.println("too little time:   " + verdicts(result));
    }
  }
}
