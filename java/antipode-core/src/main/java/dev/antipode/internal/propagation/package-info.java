/**
 * Between a scope and the texts that come and go. Begin with {@link dev.antipode.internal.propagation.Gate}.
 */
package dev.antipode.internal.propagation;
