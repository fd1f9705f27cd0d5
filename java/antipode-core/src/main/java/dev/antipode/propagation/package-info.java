/**
 * Lineages in headers and messages, for protocols and queues of your own. Begin with
 * {@link dev.antipode.propagation.Propagation} for requests, {@link dev.antipode.propagation.Messages} for messages, and
 * {@link dev.antipode.propagation.AntipodePropagator} for OpenTelemetry.
 */
package dev.antipode.propagation;
