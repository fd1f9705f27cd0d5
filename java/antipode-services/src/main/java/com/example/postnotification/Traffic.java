package com.example.postnotification;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Octets of HTTP headers in and out of one service, those of lineages apart. */
final class Traffic {
  private static final int SEPARATORS = 4;

  private final LongAdder requests = new LongAdder();
  private final Size asked = new Size();
  private final Size answered = new Size();

  void request(Size size) {
    requests.increment();
    asked.add(size);
  }

  void response(HttpServletResponse response) {
    Size size = new Size();
    for (String name : response.getHeaderNames()) {
      size.lines(name, response.getHeaders(name));
    }
    answered.add(size);
  }

  Map<String, Long> shown() {
    Map<String, Long> shown = new LinkedHashMap<>();
    shown.put("requests", requests.sum());
    shown.put("request_headers", asked.all());
    shown.put("request_lineage", asked.lineage());
    shown.put("response_headers", answered.all());
    shown.put("response_lineage", answered.lineage());
    return shown;
  }

  /** The octets of a request's headers. */
  static Size of(HttpServletRequest request) {
    Size size = new Size();
    for (String name : Collections.list(request.getHeaderNames())) {
      size.lines(name, Collections.list(request.getHeaders(name)));
    }
    return size;
  }

  /** Octets of header lines as HTTP/1.1 spells them, and of those that carry a lineage. */
  static final class Size {
    private final LongAdder all = new LongAdder();
    private final LongAdder lineage = new LongAdder();

    long all() {
      return all.sum();
    }

    long lineage() {
      return lineage.sum();
    }

    void add(Size other) {
      all.add(other.all());
      lineage.add(other.lineage());
    }

    void lines(String name, Collection<String> values) {
      values.forEach(value -> line(name, value));
    }

    void line(String name, String value) {
      int octets = octets(name) + octets(value) + SEPARATORS;
      all.add(octets);
      switch (name.toLowerCase(Locale.ROOT)) {
        case "antipode-lineage", "uberctx-antipode" -> lineage.add(octets);
        case "baggage" -> {
          for (String member : value.split(",")) {
            if (member.strip().startsWith("antipode=")) {
              lineage.add(octets(member) + 1);
            }
          }
        }
        default -> { }
      }
    }

    private static int octets(String text) {
      return text.getBytes(StandardCharsets.UTF_8).length;
    }
  }
}
