package dev.antipode.rabbitmq;

import dev.antipode.Delivery;
import dev.antipode.Lineage;
import dev.antipode.LineageScope;
import dev.antipode.Mode;
import dev.antipode.ScopeKind;
import dev.antipode.observer.Observers;
import dev.antipode.propagation.Messages;
import dev.antipode.shim.RegisteredStore;
import dev.antipode.shim.TrustRules;
import java.util.Map;

/**
 * The scopes of one queue's messages, from their headers alone (SCOPE-6, PROP-17): for frameworks that take messages by the
 * client and hand them to threads of their own. {@link AntipodeRabbit#scopes} makes them.
 */
public final class MessageScopes {
  private final RegisteredStore store;
  private final RabbitOptions options;

  MessageScopes(RegisteredStore store, RabbitOptions options) {
    this.store = store;
    this.options = options;
  }

  /**
   * Opens the scope of one message, for try-with-resources. Never throws for what came in. A message's coming proves nothing
   * here, as it is not known which broker it came from.
   *
   * @param headers as the client or a framework gives them
   * @param delivery what a barrier in it may do with the message; null where it can do nothing
   */
  public LineageScope open(Map<String, ?> headers, Delivery delivery) {
    return filled(LineageScope.open(Lineage.EMPTY, ScopeKind.MESSAGE, delivery), headers);
  }

  /** The same without making it current: for messages whose handling goes on in other threads, until {@code stop}. */
  public LineageScope create(Map<String, ?> headers, Delivery delivery) {
    return filled(LineageScope.create(Lineage.EMPTY, ScopeKind.MESSAGE, delivery), headers);
  }

  private LineageScope filled(LineageScope scope, Map<String, ?> headers) {
    scope.queue(store.name());
    receive(scope, headers);
    return scope;
  }

  /** Another message is handled in this scope, too: one of a batch. */
  public void receive(LineageScope scope, Map<String, ?> headers) {
    Messages.receive(
        scope, headers, new Messages.Options(options.lineageIn(), null, "a message of " + store.name()));
    if (store.mode() != Mode.OFF && options.stamped() && headers.get(Messages.HEADER) == null && isTrusted()) {
      scope.receive(Lineage.EMPTY.markedIncomplete());
      scope.noteGap(
          "malformed",
          "",
          "a message of " + store.name() + " came without the lineage that all of them have (stamped)");
    }
  }

  /** What a message brings that was pulled in this scope, or answers one that was sent there, joins the scope (SCOPE-29). */
  public void join(LineageScope scope, Map<String, ?> headers) {
    LineageScope own = create(headers, null);
    scope.merge(own.lineage());
    own.gaps().forEach(gap -> scope.noteGap(gap.reason(), gap.store(), gap.detail()));
    Observers.events().onScopeCopied(own, scope);
    own.stop();
  }

  /** Whether lineages of these messages count here at all; only then is one that lacks a loss (TRUST-28). */
  private boolean isTrusted() {
    return TrustRules.takesMessages(options.lineageIn());
  }
}
