package com.example.postnotification;

import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** post-storage in region B: reads posts at the replicas in turn (paper figure 2, step 6). */
final class PostReader implements Service {
  private static final String PATH = "/posts/";

  private final List<String> names;
  private final List<Posts> replicas = new ArrayList<>();
  private final AtomicInteger turns = new AtomicInteger();

  PostReader(Site site) {
    names = List.copyOf(site.setup().replicas().keySet());
    for (String name : names) {
      replicas.add(Posts.open(site.setup(), name));
    }
  }

  @Override
  public Answer answer(HttpServletRequest request, byte[] body) throws Exception {
    String path = request.getRequestURI();
    if (!request.getMethod().equals("GET") || !path.startsWith(PATH)) {
      return Answer.NOTHING_HERE;
    }
    int turn = Math.floorMod(turns.getAndIncrement(), names.size());
    byte[] post = replicas.get(turn).read("post:" + path.substring(PATH.length()));
    Map<String, String> headers = Map.of("x-replica", names.get(turn), "x-read-at-ns", Long.toString(System.nanoTime()));
    return new Answer(post == null ? 404 : 200, "application/octet-stream", headers, post == null ? new byte[0] : post);
  }
}
