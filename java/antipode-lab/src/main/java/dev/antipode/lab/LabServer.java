package dev.antipode.lab;

/**
 * One server of a lab, as the lab's file of endpoints has it.
 *
 * @param name {@code a}, {@code b1}, …
 * @param role {@code primary}, {@code replica}, {@code old primary}
 * @param host where it listens
 * @param port where it listens
 * @param url its address
 * @param pid of its process
 */
public record LabServer(String name, String role, String host, int port, String url, long pid) {}
