package dev.antipode.http;

import dev.antipode.LineageScope;
import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.HeaderCarrier;
import dev.antipode.propagation.Propagation;
import dev.antipode.propagation.Propagation.Outgoing;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.springframework.http.HttpHeaders;
import org.springframework.http.client.ClientHttpResponse;

/** Headers of Spring's. */
record SpringHeaders(HttpHeaders headers) implements HeaderCarrier {
  /** Judges a request to this host, and makes its headers what they must be. */
  static Outgoing judge(HttpHeaders headers, String host) {
    Outgoing outgoing = Propagation.prepareRequest(new SpringHeaders(headers), host);
    outgoing.changes().forEach((name, value) -> {
      if (value == null) {
        headers.remove(name);
      } else {
        headers.set(name, value);
      }
    });
    return outgoing;
  }

  /** Takes an older lineage out. */
  static void strip(HttpHeaders headers) {
    Propagation.removeLineage(new SpringHeaders(headers));
  }

  /** Takes what a response of this host brings. */
  static void merge(ClientHttpResponse response, String host) throws IOException {
    List<String> values = response.getHeaders().getOrDefault(Carriers.LINEAGE_HEADER, List.of());
    Propagation.answered(LineageScope.current(), values, host, response.getStatusCode().value());
  }

  @Override
  public Iterable<Header> lines() {
    List<Header> lines = new ArrayList<>();
    headers.forEach((name, values) -> values.forEach(value -> lines.add(new Header(name, value))));
    return lines;
  }

  @Override
  public void set(String name, String value) {
    headers.set(name, value);
  }

  @Override
  public void remove(String name) {
    headers.remove(name);
  }
}
