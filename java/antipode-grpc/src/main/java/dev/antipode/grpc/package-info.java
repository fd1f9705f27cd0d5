/** Interceptors for gRPC servers and channels (chapter PROP of the specification). */
package dev.antipode.grpc;

