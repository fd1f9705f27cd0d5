package dev.antipode.observer;

/**
 * A write, as observers have it.
 *
 * @param store the store that it goes to
 * @param site where it was begun; empty where nobody asks for that
 */
public record WriteSite(String store, String site) {}
