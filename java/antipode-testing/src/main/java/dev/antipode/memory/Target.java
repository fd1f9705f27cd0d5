package dev.antipode.memory;

/** How the shim reaches a server: the store and the node. */
record Target(ReplicatedLog log, Node node) {}
