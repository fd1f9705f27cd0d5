package dev.antipode.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.net.ConnectException;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Arrays;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Spring is optional: the hook of the JDK's client works without it on the class path. */
class WithoutSpringTest {
  @Test
  void theJdkClientIsWrappedAndCalls() throws Exception {
    URL[] path = Arrays.stream(System.getProperty("java.class.path").split(Pattern.quote(File.pathSeparator)))
        .filter(entry -> !entry.contains("spring")).map(WithoutSpringTest::url).toArray(URL[]::new);
    try (URLClassLoader loader = new URLClassLoader(path, ClassLoader.getPlatformClassLoader())) {
      assertThatThrownBy(() -> loader.loadClass("org.springframework.http.HttpRequest"))
          .isInstanceOf(ClassNotFoundException.class);
      Class<?> hook = loader.loadClass(AntipodeHttp.class.getName());
      assertThat(hook).isNotSameAs(AntipodeHttp.class);
      HttpClient client = (HttpClient) hook.getMethod("wrap", HttpClient.class).invoke(null, HttpClient.newHttpClient());
      HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:9/")).build();
      assertThatThrownBy(() -> client.send(request, BodyHandlers.discarding())).isInstanceOf(ConnectException.class);
    }
  }

  private static URL url(String entry) {
    try {
      return new File(entry).toURI().toURL();
    } catch (MalformedURLException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
