/** Auto-configuration for Spring Boot. */
package dev.antipode.spring;

