/** Post-notification's services in Java: what benchmarks/services.md says of a host. */
package dev.antipode.services;
