/**
 * The cases of {@link dev.antipode.testing.ShimConformance}, a class a subject.
 */
package dev.antipode.testing.conformance;
