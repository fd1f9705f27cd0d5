package dev.antipode.services;

import jakarta.servlet.http.HttpServletRequest;
import java.util.Map;

/** notifier: sends a notification from region A (paper figure 2, step 3). */
final class Notifier implements Service {
  private final Site site;

  Notifier(Site site) {
    this.site = site;
  }

  @Override
  public Answer answer(HttpServletRequest request, byte[] body) throws Exception {
    if (!Service.is(request, "POST", "/notifications")) {
      return Answer.NOTHING_HERE;
    }
    Setup setup = site.setup();
    try (Tracing.Current sending = Tracing.sending()) {
      switch (setup.options().notifier()) {
        case "http" -> site.post("follower-notify", "/notifications", "application/json", body, 202);
        default -> throw new IllegalArgumentException("notifier " + setup.options().notifier() + ": want http");
      }
    }
    return Answer.json(202, Map.of());
  }
}
