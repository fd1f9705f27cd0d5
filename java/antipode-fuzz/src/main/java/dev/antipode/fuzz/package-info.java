/** Jazzer's targets: {@code scripts/fuzz-java}. */
package dev.antipode.fuzz;

