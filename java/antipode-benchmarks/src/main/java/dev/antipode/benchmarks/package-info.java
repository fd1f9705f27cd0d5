/** Benchmarks of the core by JMH; {@code scripts/micro} runs them. */
package dev.antipode.benchmarks;
