package dev.antipode.internal.diagnostics.history;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * In which order a scope's operations go into a history, where they may overlap (HIST-5, HIST-26).
 *
 * <p>What overlaps nothing stands in the scope's own thread. What is begun while another operation of the scope is under
 * way stands in a thread of its own, with a message from the scope where it is begun and one back where it ends, and so
 * comes before nothing that was begun before its end. Not for several threads at once: the recorder holds its lock.
 */
final class HistoryOrder {
  private final String process;
  private final String tag;
  private final Consumer<Map<String, Object>> put;
  private long ids;

  /** Puts the lines of this process; ids begin with the tag. */
  HistoryOrder(String process, String tag, Consumer<Map<String, Object>> put) {
    this.process = process;
    this.tag = tag;
    this.put = put;
  }

  /** One scope in the history: its name, and what of it is under way. */
  static final class Strand {
    private final String name;
    private final String request;
    private Step holder; // the operation that will stand in the scope's own thread
    private List<String> loose = new ArrayList<>(); // messages back from what ended while the holder was under way
    private int beside;

    Strand(String name, String request) {
      this.name = name;
      this.request = request;
    }

    private String nameBeside() {
      beside++;
      return name + "+" + beside;
    }
  }

  /** One operation from its beginning to its end. */
  static final class Step {
    private final Strand strand;
    private final Object lineage; // what the scope carried when it was begun
    private final String own; // its own thread, where it has one
    private List<String> heard; // what that thread hears first
    private boolean over;

    private Step(Strand strand, Object lineage, String own, List<String> heard) {
      this.strand = strand;
      this.lineage = lineage;
      this.own = own;
      this.heard = heard;
    }
  }

  /** What an operation says besides what all lines have. */
  record Line(String kind, Map<String, Object> fields) {}

  /** An id that no other line of any process has. */
  String newId() {
    ids++;
    return tag + ids;
  }

  /** A line with what all of them have (HIST-2). */
  Map<String, Object> line(String kind, String scope, String request, Map<String, Object> fields) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("history", 1);
    line.put("id", newId());
    line.put("kind", kind);
    line.put("process", process);
    line.put("scope", scope);
    if (!request.isEmpty()) {
      line.put("request", request);
    }
    line.put("time", System.currentTimeMillis() / 1000.0);
    line.putAll(fields);
    return line;
  }

  /** An operation of the scope is begun. */
  Step begin(Strand strand, Object lineage) {
    if (strand.holder == null) {
      strand.holder = new Step(strand, lineage, "", List.of());
      return strand.holder;
    }
    List<String> heard = new ArrayList<>();
    heard.add(tell(strand, strand.name));
    heard.addAll(strand.loose);
    return new Step(strand, lineage, strand.nameBeside(), heard);
  }

  /**
   * It has ended, with these lines; none where nothing happened.
   *
   * @param certain whether it is known to have taken effect by now; what may do so later comes before nothing here
   */
  void end(Step step, List<Line> told, boolean certain) {
    if (step.over) {
      return;
    }
    step.over = true;
    Strand strand = step.strand;
    boolean holds = step.own.isEmpty();
    if (holds && !certain && !told.isEmpty()) {
      step.heard = List.of(tell(strand, strand.name));
    }
    String name = !holds ? step.own : certain ? strand.name : strand.nameBeside();
    if (!told.isEmpty()) {
      hear(strand, name, step.heard);
      for (Line line : told) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put(HistoryWriter.LINEAGE, step.lineage);
        fields.putAll(line.fields);
        put.accept(line(line.kind, name, strand.request, fields));
      }
    }
    if (holds) {
      strand.holder = null;
      List<String> loose = strand.loose;
      strand.loose = new ArrayList<>();
      hear(strand, strand.name, loose);
    } else if (!told.isEmpty() && certain) {
      String back = tell(strand, name);
      if (strand.holder == null) {
        hear(strand, strand.name, List.of(back));
      } else {
        strand.loose.removeAll(step.heard);
        strand.loose.add(back);
      }
    }
  }

  /** An operation that ends as it begins: a sending, a receipt. */
  void instant(Strand strand, String kind, Object lineage, String message) {
    end(begin(strand, lineage), List.of(new Line(kind, Map.of("message", message))), true);
  }

  /** All that was done in one scope comes before what is done in another from now on. */
  void joined(Strand ended, Strand strand) {
    String message = newId();
    instant(ended, "send", null, message);
    instant(strand, "receive", null, message);
  }

  /** A message within the scope, which carries all that its sender depends on (HIST-12). */
  private String tell(Strand strand, String name) {
    String message = newId();
    put.accept(line("send", name, strand.request, Map.of("message", message)));
    return message;
  }

  private void hear(Strand strand, String name, List<String> messages) {
    for (String message : messages) {
      put.accept(line("receive", name, strand.request, Map.of("message", message)));
    }
  }
}
