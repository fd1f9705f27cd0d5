package dev.antipode.examples;

import dev.antipode.Antipode;
import dev.antipode.BarrierOptions;
import dev.antipode.memory.MemoryClient;
import dev.antipode.memory.MemoryStore;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * The paper's example (section 2.2): a follower is told of a post that has not reached the follower's region yet.
 *
 * <pre>
 * mvn -q -f java/pom.xml -pl antipode-examples -am package -DskipTests
 * java -cp java/antipode-examples/target/antipode-examples.jar dev.antipode.examples.PostNotification
 * </pre>
 *
 * <p>prints
 *
 * <pre>
 * without Antipode: 5 of 5 followers did not find the post
 * with Antipode:    0 of 5 followers did not find the post
 * </pre>
 *
 * <p>Four services in one process, two regions. {@code benchmarks} has them as processes that speak HTTP.
 */
public final class PostNotification {
  private static final int REQUESTS = 5;
  private static final MemoryStore POSTS = MemoryStore.named("blog-posts").regions("a", "b");
  private static final MemoryClient POSTS_A = POSTS.client("a");
  private static final MemoryClient POSTS_B = POSTS.client("b");
  private static final BlockingQueue<Message> NOTIFICATIONS = new LinkedBlockingQueue<>();

  private PostNotification() {}

  /** What goes through the queue: headers and a body, as in any broker. */
  private record Message(Map<String, String> headers, String post) {}

  // Region A

  /** A user's request. In a service a filter opens the scope. */
  private static void postUpload(String post, String text) {
    try (var scope = Antipode.scope()) {
      postStorage(post, text);
      notifier(post);
    }
  }

  private static void postStorage(String post, String text) {
    POSTS_A.set(post, text);
  }

  /** Shims of queues write this header by themselves. */
  private static void notifier(String post) {
    NOTIFICATIONS.add(new Message(Map.of("antipode-lineage", Antipode.serialize()), post));
  }

  // Region B

  /** Takes one message and reads the post that it speaks of; whether that was found. */
  private static boolean followerNotify(boolean wait) throws InterruptedException {
    Message message = NOTIFICATIONS.poll(10, TimeUnit.SECONDS);
    try (var scope = Antipode.messageScope(message.headers())) {
      if (wait) {
        Antipode.barrier(BarrierOptions.defaults().timeout(Duration.ofSeconds(10)));
      }
      return POSTS_B.get(message.post()) != null;
    }
  }

  /** Runs the requests; for how many of them the follower did not find the post. */
  private static int notFound(boolean wait) throws Exception {
    int missing = 0;
    ExecutorService regionB = Executors.newSingleThreadExecutor();
    try {
      for (int number = 0; number < REQUESTS; number++) {
        String post = (wait ? "with:" : "without:") + number;
        POSTS.freeze("b"); // the link between the regions is slow just now
        Future<Boolean> found = regionB.submit(() -> followerNotify(wait));
        postUpload(post, "Hello");
        if (wait) {
          Thread.sleep(50); // with a barrier the follower is waiting by now, or will be
        } else {
          found.get();
        }
        POSTS.heal("b");
        missing += found.get() ? 0 : 1;
      }
    } finally {
      regionB.shutdown();
    }
    return missing;
  }

  /** Runs the same without and with a barrier. */
  public static void main(String[] arguments) throws Exception {
    String words = " of " + REQUESTS + " followers did not find the post";
    System.out.println("without Antipode: " + notFound(false) + words);
    System.out.println("with Antipode:    " + notFound(true) + words);
  }
}
