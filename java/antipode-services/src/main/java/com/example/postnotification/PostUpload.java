package com.example.postnotification;

import com.fasterxml.jackson.databind.node.ObjectNode;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Map;

/** post-upload: what users call. It stores the post, then has the followers notified (paper figure 2, steps 1 and 3). */
final class PostUpload implements Service {
  private final Site site;

  PostUpload(Site site) {
    this.site = site;
  }

  @Override
  public Answer answer(HttpServletRequest request, byte[] body) throws Exception {
    if (!Service.is(request, "POST", "/upload")) {
      return Answer.NOTHING_HERE;
    }
    byte[] stored = site.post("post-storage-a", "/posts", "application/octet-stream", body, 201).body();
    ObjectNode post = (ObjectNode) Answer.JSON.readTree(stored);
    byte[] notification = Answer.JSON.writeValueAsBytes(Map.of("post", post.get("id").asText(), "user", "alice"));
    site.post("notifier", "/notifications", "application/json", notification, 202);
    return Answer.json(201, post.put("trace", Tracing.traceId()));
  }
}
