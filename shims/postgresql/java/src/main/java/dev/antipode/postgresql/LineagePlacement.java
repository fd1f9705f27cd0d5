package dev.antipode.postgresql;

import dev.antipode.shim.LineageAtRest;
import dev.antipode.shim.Write;
import java.sql.SQLException;
import org.postgresql.core.BaseConnection;

/** What one connection's server is told to put beside rows: the lineage that may rest there (PROP-21). */
final class LineagePlacement {
  private final Binding binding;
  private final BaseConnection physical;
  private final OpenWrite now;

  /** Whether it was told so for longer than a transaction. */
  private boolean inSession;

  LineagePlacement(Binding binding, BaseConnection physical, OpenWrite now) {
    this.binding = binding;
    this.physical = physical;
    this.now = now;
  }

  /**
   * Tells it before a write of this kind; for one that commits by itself until {@link #takeBack}.
   *
   * @throws SQLException the server's error where it refuses: what was to be written would rest without its lineage
   */
  void put(Write write, Kind kind, boolean alone) throws SQLException {
    if (!binding.rests() || (kind != Kind.WRITE && kind != Kind.MAYBE)) {
      return;
    }
    boolean lineageOut = binding.options().lineageOut();
    String text = LineageAtRest.text(write.lineageBeside(lineageOut), lineageOut);
    if (!alone && text.equals(now.told)) {
      return;
    }
    String statement = "SELECT set_config('antipode.lineage', " + Questions.quoted(text) + ", " + !alone + ")";
    SQLException refused =
        (alone ? PositionQuery.ask(physical, statement) : PositionQuery.askWithin(physical, statement)).error();
    if (refused != null) {
      throw refused;
    }
    if (alone) {
      inSession = true;
    } else {
      now.told = text;
    }
  }

  /** A statement was or will be sent that may change settings: ROLLBACK TO takes back what was set behind it. */
  void maySet(Kind kind) {
    if (kind != Kind.READ && kind != Kind.WRITE) {
      now.told = null;
    }
  }

  /** Takes the lineage back from the connection: nothing of ours stays on it (SHIM-5). */
  void takeBack() {
    if (inSession && PositionQuery.isIdle(physical)) {
      inSession = false;
      PositionQuery.ask(physical, "RESET antipode.lineage");
    }
  }
}
