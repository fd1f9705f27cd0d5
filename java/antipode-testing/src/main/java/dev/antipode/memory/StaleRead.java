package dev.antipode.memory;

import dev.antipode.Key;

/**
 * A read at a replica that may return more than one version: the newest, or one that is up to {@code most} behind it.
 *
 * @param store the store's logical name
 * @param region the replica's
 * @param key what is read
 * @param most how many versions behind the newest it can be; at least 1
 */
public record StaleRead(String store, String region, Key key, int most) {}
