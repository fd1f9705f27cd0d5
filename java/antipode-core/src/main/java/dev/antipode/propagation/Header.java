package dev.antipode.propagation;

/**
 * One line of a header.
 *
 * @param name its name, in any case
 * @param value its value as it came
 */
public record Header(String name, String value) {}
