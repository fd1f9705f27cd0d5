package dev.antipode;

/**
 * Why a lineage is not complete: what happened in this process.
 *
 * @param reason one word: {@code malformed}, {@code budget}, {@code pending}, {@code untrusted}, {@code seal} …
 * @param store the store it happened to; empty where that is not known
 * @param detail what happened, in a sentence; may be empty
 */
public record Gap(String reason, String store, String detail) {}
