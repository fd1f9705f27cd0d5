package dev.antipode.internal.diagnostics.history;

import dev.antipode.Lineage;
import dev.antipode.internal.base.Json;
import dev.antipode.internal.base.ProcessSettings;
import dev.antipode.internal.diagnostics.dryrun.LineWriter;
import dev.antipode.internal.diagnostics.dryrun.PrivateFile;
import dev.antipode.shim.Logs;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One process's file in the folder of a history: nothing is rotated away, and what was not written is said (HIST-24). */
final class HistoryWriter extends LineWriter {
  /** The field of the lineage, whose text is made in the writer's thread. */
  static final String LINEAGE = "lineage";

  private static final String BRANCHES = "antipode-branches"; // the store whose entries are open branches, no writes

  private final PrivateFile file;
  private final GapLine gap;
  private long told; // this and the next in the writer's thread
  private boolean full;

  /** The line that says why so many lines are missing. */
  interface GapLine {
    Map<String, Object> of(String reason, long count);
  }

  HistoryWriter(Path file, GapLine gap) {
    this.file = new PrivateFile(file);
    this.gap = gap;
  }

  @Override
  protected void append(List<Map<String, Object>> recorded) throws IOException {
    if (full) {
      count(recorded.size());
      return;
    }
    long untold = dropped() - told;
    List<Map<String, Object>> lines = new ArrayList<>(recorded.size() + 1);
    long most = ProcessSettings.inForce().recordsMaxMib() * (long) FILES_KEPT << 20;
    if (file.size() > most) {
      full = true;
      lines.add(gap.of("full: " + file.path().getFileName() + " has the size that it may have", untold + recorded.size()));
      Logs.warn("AP602", "history", "the history is full: " + file.path() + " (ANTIPODE_RECORDS_MAX_MIB).", "dropped");
    } else {
      if (untold > 0) {
        lines.add(gap.of("not written", untold));
      }
      lines.addAll(recorded);
    }
    StringBuilder text = new StringBuilder();
    lines.forEach(line -> text.append(Json.line(spelled(line))).append('\n'));
    file.append(text);
    told += untold;
  }

  @Override
  protected void warn(String why) {
    Logs.warn("AP602", "history", "operations are missing from the history: " + why + ".", "dropped");
  }

  /** With its lineage as a text: of the application's writes, and without what belongs to one text alone. */
  private static Map<String, Object> spelled(Map<String, Object> line) {
    if (!(line.get(LINEAGE) instanceof Lineage carried)) {
      return line;
    }
    Lineage lineage = carried.withExtensions(List.of());
    if (lineage.sectionText(BRANCHES) != null) {
      lineage = lineage.without(BRANCHES);
    }
    Map<String, Object> copy = new LinkedHashMap<>(line);
    copy.put(LINEAGE, lineage.serialize());
    return copy;
  }
}
