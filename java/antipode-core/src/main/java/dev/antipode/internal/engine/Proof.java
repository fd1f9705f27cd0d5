package dev.antipode.internal.engine;

import dev.antipode.internal.base.Ticks;

/**
 * By which question an answer came.
 *
 * @param askedAt when it was asked, {@link Ticks}
 * @param generation the server's at that time
 * @param isKept it was asked for others, before anybody asked for this write here
 */
record Proof(long askedAt, int generation, boolean isKept) {}
