/** An embedded store, fixtures for tests, and the conformance kit of shims. */
module dev.antipode.testing {
  requires transitive dev.antipode.core;
  requires dev.antipode.diagnostics;
  requires java.logging;
  requires static transitive org.junit.jupiter.api;

  exports dev.antipode.memory;
  exports dev.antipode.testing;
  exports dev.antipode.testing.conformance;
}
