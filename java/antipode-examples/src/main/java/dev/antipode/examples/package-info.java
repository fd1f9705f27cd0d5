/** The samples that every language has. Begin with {@link dev.antipode.examples.Basic}. */
package dev.antipode.examples;
