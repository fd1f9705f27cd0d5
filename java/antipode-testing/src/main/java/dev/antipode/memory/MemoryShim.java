package dev.antipode.memory;

import dev.antipode.Opaque;
import dev.antipode.Ordered;
import dev.antipode.Rest;
import dev.antipode.Verdict;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Capabilities.Marks;
import dev.antipode.shim.Capabilities.Versions;
import dev.antipode.shim.EpochJudge;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The shims of the embedded store, one for each kind of version: one question is a look at the server under its lock. */
abstract class MemoryShim extends Shim {
  /** A shim for this kind of version. */
  static MemoryShim of(Versions versions) {
    return switch (versions) {
      case POSITION -> new Positions();
      case OBJECT -> new Objects();
      case OPAQUE -> new OpaqueObjects();
    };
  }

  /** The same, for a store in which no clock brings what is written, so that waiting is what does. */
  static MemoryShim ofMonkey(Versions versions) {
    return switch (versions) {
      case POSITION -> new Positions() {
        @Override
        public Capabilities capabilities() {
          return super.capabilities().blockingWait(true);
        }
      };
      case OBJECT -> new Objects() {
        @Override
        public Capabilities capabilities() {
          return super.capabilities().blockingWait(true);
        }
      };
      case OPAQUE -> new OpaqueObjects() {
        @Override
        public Capabilities capabilities() {
          return super.capabilities().blockingWait(true);
        }
      };
    };
  }

  @Override
  public String kind() {
    return "memory";
  }

  @Override
  public boolean notesReads() {
    return true;
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) {
    Target target = (Target) server.target();
    return target.log().looking(target.node(), node -> {
      proved(node, server);
      List<Visibility> answers = new ArrayList<>(ids.size());
      for (WriteId id : ids) {
        answers.add(judge(node, id));
      }
      return answers;
    });
  }

  /** In monkey mode: applies what these writes need to be visible, where a barrier waits for them (MONKEY-5). */
  @Override
  public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) {
    Target target = (Target) server.target();
    if (server.awaited()) {
      target.log().looking(target.node(), node -> {
        for (WriteId id : ids) {
          while (judge(node, id).verdict() == Verdict.NOT_YET && !node.coming().isEmpty()) {
            node.take(1);
          }
        }
        return null;
      });
    }
    return visible(ids, server);
  }

  /** What this look proves beside what was asked. */
  void proved(Node node, Server server) {}

  /** One write at the server as it stands. */
  abstract Visibility judge(Node node, WriteId id);

  @Override
  public Watch watch(Server server) {
    Target target = (Target) server.target();
    MemoryWatch watch = new MemoryWatch(target, server);
    target.log().watch(target.node(), watch);
    return watch;
  }

  @Override
  public String address(Object target) {
    return target instanceof Target known
        ? "memory://" + known.log().name() + "/" + known.node().region
        : super.address(target);
  }

  /** Positions: judged by the server's place in its epoch, and by marks for ended ones (EPOCH-9 to EPOCH-12). */
  static class Positions extends MemoryShim {
    private static final Capabilities CAPABILITIES =
        Capabilities.positions().push(true).tombstones(true).rest(Rest.FIELD).marks(Marks.IN_BAND);

    @Override
    public Capabilities capabilities() {
      return CAPABILITIES;
    }

    @Override
    void proved(Node node, Server server) {
      Map<String, Long> proved = new HashMap<>(node.marks);
      node.ends.forEach((epoch, end) -> proved.merge(epoch, end, Node::greater));
      proved.put(node.epoch, node.counter);
      server.applied(node.instance, node.epoch, proved);
    }

    @Override
    Visibility judge(Node node, WriteId id) {
      if (!id.isPosition()) {
        return Visibility.unproven("this store gives positions only");
      }
      Ordered wanted = (Ordered) id.version();
      return EpochJudge.judge(wanted.epoch(), wanted.counter(), node.epoch, node.counter, node.marks, node.ends);
    }
  }

  /** Objects whose versions compare: visible is that version or a later one of the key, deletions too (SHIM-31). */
  static class Objects extends MemoryShim {
    private static final Capabilities CAPABILITIES =
        Capabilities.objects().push(true).tombstones(true).rest(Rest.FIELD);

    @Override
    public Capabilities capabilities() {
      return CAPABILITIES;
    }

    @Override
    Visibility judge(Node node, WriteId id) {
      if (id.isPosition() || !(id.version() instanceof Ordered wanted) || !wanted.epoch().isEmpty()) {
        return Visibility.unproven("this store gives versions of objects only");
      }
      Cell cell = node.cell(id.key());
      if (cell == null) {
        return Visibility.notYet("there is no such object");
      }
      Ordered there = (Ordered) cell.version();
      return there.compareCounter(wanted.counter()) >= 0
          ? Visibility.VISIBLE
          : Visibility.notYet("it has version " + there.counterText() + ", wanted " + wanted.counterText());
    }
  }

  /** Objects whose versions are equal or not: another one in its place proves nothing (SHIM-32). */
  static class OpaqueObjects extends MemoryShim {
    private static final Capabilities CAPABILITIES = Capabilities.opaque().push(true).rest(Rest.FIELD);

    @Override
    public Capabilities capabilities() {
      return CAPABILITIES;
    }

    @Override
    Visibility judge(Node node, WriteId id) {
      if (!(id.version() instanceof Opaque wanted)) {
        return Visibility.unproven("this store gives versions without order only");
      }
      if (wanted.mark().startsWith(ReplicatedLog.DELETED)) {
        return Visibility.unproven("a delete leaves nothing behind there that could be seen");
      }
      Cell cell = node.cell(id.key());
      if (cell == null) {
        return Visibility.notYet("there is no such object");
      }
      return cell.version().equals(wanted)
          ? Visibility.VISIBLE
          : Visibility.notYet("it has another version, earlier or later");
    }
  }
}
