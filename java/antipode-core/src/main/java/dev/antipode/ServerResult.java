package dev.antipode;

/**
 * What a barrier found out about one server.
 *
 * @param address the server, as its shim names it
 * @param verdict the worst of what was found there
 * @param reason why, in a sentence; empty where it is visible
 * @param leftOut it does not answer, and the pass does not speak of it (BAR-26)
 */
public record ServerResult(String address, Verdict verdict, String reason, boolean leftOut) {}
