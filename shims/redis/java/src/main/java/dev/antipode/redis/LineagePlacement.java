package dev.antipode.redis;

import dev.antipode.ConfigurationException;
import dev.antipode.Lineage;
import dev.antipode.Rest;
import dev.antipode.StoreOptions;
import dev.antipode.shim.LineageAtRest;

/**
 * Where the lineages of one wrapped client rest beside its values: how its commands are sent for that, and what of their
 * replies the application gets (SHIM-9). Replies are octets, numbers, lists and null, as they came.
 */
abstract class LineagePlacement {
  private final String store;
  private final boolean lineageIn;
  private final boolean lineageOut;

  LineagePlacement(StoreOptions options) {
    this.store = options.name();
    this.lineageIn = options.lineageIn();
    this.lineageOut = options.lineageOut();
  }

  /**
   * A reply as the application gets it.
   *
   * @param reply without what is ours
   * @param lineage what rested beside it; null where the reply did not hold it
   */
  record VisibleReply(Object reply, Lineage lineage) {}

  /** What these options say. */
  static LineagePlacement of(StoreOptions options) {
    Rest rest = options.restOr(null);
    boolean hasKeys = options.envelopeKeys() != null && !options.envelopeKeys().isEmpty();
    if ((rest == Rest.ENVELOPE) != hasKeys) {
      throw new ConfigurationException(
          "AP501", "rest(ENVELOPE) and envelopeKeys(\"post:*\") (as for KEYS) go together");
    }
    if (rest == null) {
      return new NoPlacement(options);
    }
    return switch (rest) {
      case FIELD -> new FieldRest(options);
      case ENVELOPE -> new Envelopes(options);
      default -> throw new ConfigurationException(
          "AP501", "rest(" + rest + "): for Redis want FIELD or ENVELOPE, or nowhere");
    };
  }

  String store() {
    return store;
  }

  boolean lineageIn() {
    return lineageIn;
  }

  /**
   * Refuses what cannot be done; nothing has been sent (SHIM-36).
   *
   * @throws ConfigurationException for a command that would see or change what is ours
   */
  void check(CommandWords command) {}

  /** Whether a command writes values that lineages rest beside. */
  abstract boolean writes(CommandWords command);

  /** Whether a command's reply is not what the application is to get. */
  abstract boolean answers(CommandWords command);

  /** Whether it is of either kind. */
  final boolean concerns(CommandWords command) {
    return writes(command) || answers(command);
  }

  /** The command that is sent for a write: the same one with a lineage's text, which is empty for none. */
  abstract CommandWords written(CommandWords command, String text);

  /** The command that is sent for a read. */
  CommandWords read(CommandWords command) {
    return command;
  }

  /** What has to be asked beside a read for its lineage; null where the reply holds it. */
  CommandWords asks(CommandWords command) {
    return null;
  }

  /** A reply, which is no error, as the application gets it. */
  abstract VisibleReply shown(CommandWords command, Object reply);

  /** The command that is sent; {@code write} is null where nothing is recorded. */
  final CommandWords wire(CommandWords command, WriteCall write) {
    if (writes(command)) {
      return written(command, write == null ? "" : LineageAtRest.text(write.lineageBeside(lineageOut), lineageOut));
    }
    return answers(command) ? read(command) : command;
  }

  /** The lineage in octets that rested beside a value; null for none (SHIM-14). */
  final Lineage lineage(Object octets) {
    return LineageAtRest.lineage(octets instanceof byte[] text ? text : null, store, lineageIn);
  }

  /** Nothing rests anywhere. */
  private static final class NoPlacement extends LineagePlacement {
    NoPlacement(StoreOptions options) {
      super(options);
    }

    @Override
    boolean writes(CommandWords command) {
      return false;
    }

    @Override
    boolean answers(CommandWords command) {
      return false;
    }

    @Override
    CommandWords written(CommandWords command, String text) {
      return command;
    }

    @Override
    VisibleReply shown(CommandWords command, Object reply) {
      return new VisibleReply(reply, null);
    }
  }
}
