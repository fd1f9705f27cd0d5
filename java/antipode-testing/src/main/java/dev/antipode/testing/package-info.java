/**
 * Fixtures for tests of services, and the conformance kit for tests of shims. Begin with
 * {@link dev.antipode.testing.AntipodeIsolated} in a service, {@link dev.antipode.testing.ShimConformance} in a shim.
 */
package dev.antipode.testing;
