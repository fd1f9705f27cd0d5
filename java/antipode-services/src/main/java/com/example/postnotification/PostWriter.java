package com.example.postnotification;

import jakarta.servlet.http.HttpServletRequest;
import java.util.Map;
import java.util.UUID;

/** post-storage in region A: writes posts (paper figure 2, step 2). */
final class PostWriter implements Service {
  private final Posts posts;

  PostWriter(Site site) {
    posts = Posts.open(site.setup(), "a");
  }

  @Override
  public Answer answer(HttpServletRequest request, byte[] body) throws Exception {
    if (!Service.is(request, "POST", "/posts")) {
      return Answer.NOTHING_HERE;
    }
    String post = UUID.randomUUID().toString().replace("-", "");
    long sent = System.nanoTime(); // CLOCK_MONOTONIC, which the processes of a machine share
    posts.write("post:" + post, body);
    long acknowledged = System.nanoTime();
    return Answer.json(201, Map.of("id", post, "acknowledged_ns", acknowledged, "write_ns", acknowledged - sent));
  }
}
