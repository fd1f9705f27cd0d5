/**
 * The API for applications, and its values. Begin with {@link dev.antipode.Antipode}, whose verbs work on the current
 * {@link dev.antipode.LineageScope}; {@link dev.antipode.BarrierResult} says what a barrier found, {@link dev.antipode.Settings}
 * what can be set.
 */
package dev.antipode;
