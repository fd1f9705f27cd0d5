package com.example.postnotification;

import dev.antipode.http.AntipodeHttp;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/** What the services of a process share: the setup in force, and the client for calls to others. */
final class Site {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final HttpClient client;
  private volatile Setup setup;

  Site(Setup setup) {
    this.setup = setup;
    HttpClient plain =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NEVER).build();
    client = setup.antipode() ? AntipodeHttp.wrap(plain) : plain;
  }

  Setup setup() {
    return setup;
  }

  /** Has the next requests go where another setup says. */
  void route(Setup other) {
    setup = setup.routed(other);
  }

  HttpResponse<byte[]> get(String service, String path) throws IOException, InterruptedException {
    return call(request(service, path).GET());
  }

  /** Posts to another service. */
  HttpResponse<byte[]> post(String service, String path, String type, byte[] body, int want)
      throws IOException, InterruptedException {
    HttpRequest.Builder request = request(service, path).header("content-type", type);
    HttpResponse<byte[]> answer = call(request.POST(BodyPublishers.ofByteArray(body)));
    want(service, answer, want);
    return answer;
  }

  static void want(String service, HttpResponse<byte[]> answer, int... statuses) throws IOException {
    for (int status : statuses) {
      if (answer.statusCode() == status) {
        return;
      }
    }
    throw new IOException(service + " answered " + answer.statusCode() + ": " + new String(answer.body()));
  }

  private HttpRequest.Builder request(String service, String path) {
    return HttpRequest.newBuilder(URI.create(setup.addresses().get(service) + path)).timeout(PATIENCE);
  }

  private HttpResponse<byte[]> call(HttpRequest.Builder request) throws IOException, InterruptedException {
    Tracing.inject(request, HttpRequest.Builder::setHeader);
    return client.send(request.build(), BodyHandlers.ofByteArray());
  }
}
