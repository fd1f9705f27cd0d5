/**
 * Lineages with HTTP. Begin with {@link dev.antipode.http.AntipodeFilter} for servers, {@link dev.antipode.http.AntipodeHttp} and
 * {@link dev.antipode.http.AntipodeClientInterceptor} for clients.
 */
package dev.antipode.http;
