package dev.antipode.internal.engine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.antipode.WriteId;
import dev.antipode.shim.Capabilities;
import dev.antipode.shim.Server;
import dev.antipode.shim.Shim;
import dev.antipode.shim.Visibility;
import dev.antipode.shim.Watch;
import java.time.Duration;
import java.util.List;

/** A shim whose servers answer when a script says so; {@code said} is what the case says of the store. */
final class ScriptedShim extends Shim {
  private final JsonNode said;

  ScriptedShim(JsonNode said) {
    this.said = said;
  }

  @Override
  public String kind() {
    return "scripted";
  }

  @Override
  public Capabilities capabilities() {
    boolean hasObjects = said.path("versions").asText().equals("object");
    return (hasObjects ? Capabilities.objects() : Capabilities.positions())
        .push(said.path("push").asBoolean())
        .blockingWait(said.path("waits").asBoolean());
  }

  @Override
  public Duration ownPace() {
    return said.path("in_turns").asBoolean() ? Duration.ofMillis(5) : Duration.ZERO;
  }

  @Override
  public List<Visibility> visible(List<WriteId> ids, Server server) throws Exception {
    return ((ScriptedServer) server.target()).ask(ids, server);
  }

  @Override
  public List<Visibility> await(List<WriteId> ids, Server server, Duration timeout) throws Exception {
    return visible(ids, server);
  }

  @Override
  public Watch watch(Server server) {
    ((ScriptedServer) server.target()).open(server);
    return () -> { };
  }

  @Override
  public String address(Object target) {
    return ((ScriptedServer) target).name;
  }
}
