/**
 * A store in the process, with servers whose replication lags as a test says. Begin with
 * {@link dev.antipode.memory.MemoryStore}.
 */
package dev.antipode.memory;
