/** Two regions of real datastores on this machine, for tests in Java. */
package dev.antipode.lab;

