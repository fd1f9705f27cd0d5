package dev.antipode.grpc;

import io.grpc.Attributes;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * What became of the attempts of one call: gRPC repeats calls by itself, and makes up the status of those that the server
 * never answered (PROP-27).
 */
final class Attempts extends ClientStreamTracer.Factory {
  private final List<Attempt> sent = new ArrayList<>(); // under the lock of this
  private final Set<String> lineages = new LinkedHashSet<>(); // likewise

  @Override
  public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info, Metadata headers) {
    if (info.isTransparentRetry()) {
      forgetLast();
    }
    return new Attempt();
  }

  /** The attempt before was refused unread, or never left. */
  private synchronized void forgetLast() {
    for (int place = sent.size() - 1; place >= 0; place--) {
      if (!sent.get(place).answered) {
        sent.remove(place);
        return;
      }
    }
  }

  /** The lineages of all attempts that were answered, and these; each once. */
  synchronized List<String> lineages(List<String> more) {
    Set<String> all = new LinkedHashSet<>(lineages);
    all.addAll(more);
    return List.copyOf(all);
  }

  /** Whether an attempt may have reached the server of which it never said how it ended. */
  synchronized boolean isOneUnanswered(Status status) {
    long open = sent.stream().filter(attempt -> !attempt.answered).count();
    return open > (status.isOk() && sent.size() == 1 ? 1 : 0);
  }

  private final class Attempt extends ClientStreamTracer {
    private boolean answered; // under the lock of the factory

    /** There is a connection, and the call goes to it. */
    @Override
    public void streamCreated(Attributes transport, Metadata headers) {
      synchronized (Attempts.this) {
        sent.add(this);
      }
    }

    @Override
    public void inboundTrailers(Metadata trailers) {
      List<String> values = new MetadataCarrier(trailers).lineages();
      synchronized (Attempts.this) {
        answered = true;
        lineages.addAll(values);
      }
    }
  }
}
