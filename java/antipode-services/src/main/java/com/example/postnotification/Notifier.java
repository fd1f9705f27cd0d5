package com.example.postnotification;

import jakarta.servlet.http.HttpServletRequest;
import java.util.Map;

/** notifier: sends a notification from region A (paper figure 2, step 3). */
final class Notifier implements Service {
  private final Site site;
  private RabbitNotifications.Publisher publisher;

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
        case "rabbitmq" -> publisher(setup).publish(setup.exchange(), body);
        default -> throw new IllegalArgumentException(
            "notifier " + setup.options().notifier() + ": want one of http, rabbitmq");
      }
    }
    return Answer.json(202, Map.of());
  }

  /** Connects when it is first wanted. */
  private synchronized RabbitNotifications.Publisher publisher(Setup setup) throws Exception {
    if (publisher == null) {
      publisher = new RabbitNotifications(setup, "a", 1).publisher();
    }
    return publisher;
  }
}
