package dev.antipode.http;

import dev.antipode.propagation.Carriers;
import dev.antipode.propagation.Header;
import dev.antipode.propagation.Inbound;
import dev.antipode.propagation.SharedCaches;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.FilterWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.ArrayList;
import java.util.List;

/** The response, which sends the lineage before whatever makes the container send the header (PROP-13, PROP-16). */
final class InboundResponse extends HttpServletResponseWrapper {
  private static final int MOST_BYTES_A_CHARACTER = 4;

  private final Inbound inbound;
  private final String method;
  private final List<String> applications = new ArrayList<>(); // what the application itself puts into our header
  private ServletOutputStream stream;
  private PrintWriter writer;
  private long written;
  private long wanted = Long.MAX_VALUE; // the length that the application has announced
  private boolean isSized; // the application has announced a length, also 0
  private boolean left;
  private boolean isShared; // what left tells nobody's lineage

  InboundResponse(HttpServletResponse response, Inbound inbound, String method) {
    super(response);
    this.inbound = inbound;
    this.method = method;
  }

  /** Puts what the scope added until now into the header, if that has not left. */
  void sendLineage() {
    sendLineage(getStatus());
  }

  /** The header is sent now: where nothing of a body of unknown length is there, what comes before that is missing in it. */
  private void flushLineage() {
    sendLineage(getStatus(), written == 0 && !isSized);
  }

  private void sendLineage(int status) {
    sendLineage(status, false);
  }

  private synchronized void sendLineage(int status, boolean isAlone) {
    if (left) {
      withhold(status);
      return;
    }
    if (isCommitted()) { // by somebody who has the container's own response
      left = true;
      inbound.scope().sent();
      return;
    }
    left = true;
    isShared = isShared(status);
    String text = inbound.responseText(isShared, status, !applications.isEmpty(), isAlone);
    if (text != null) {
      super.addHeader(Carriers.LINEAGE_HEADER, text);
    }
    if (!isShared && inbound.mayAnswer()) {
      applications.forEach(value -> super.addHeader(Carriers.LINEAGE_HEADER, value));
    }
  }

  /** Takes a lineage out again where the page of an error has come to be one that shared caches may keep. */
  private void withhold(int status) {
    if (!isShared && !isCommitted() && super.containsHeader(Carriers.LINEAGE_HEADER) && isShared(status)) {
      isShared = true;
      String text = inbound.responseText(true, status, true);
      super.setHeader(Carriers.LINEAGE_HEADER, text == null ? SharedCaches.MARK : text); // containers pass over null
    }
  }

  private boolean isShared(int status) {
    List<Header> lines = super.getHeaderNames().stream()
        .flatMap(name -> super.getHeaders(name).stream().map(value -> new Header(name, value)))
        .toList();
    return SharedCaches.mayKeep(lines, method, status);
  }

  /**
   * So many bytes are about to be written: where they may not fit into the container's buffer, the header leaves. So it does
   * with the last byte of a response of known length, behind which containers take no header any more. The page of an error
   * may come to be one that caches keep: until then what has been put there is taken out again.
   */
  private void write(long bytes) {
    written += bytes;
    if (written >= Math.min(getBufferSize(), wanted)) {
      sendLineage();
    }
  }

  private void announce(long length) {
    isSized = true;
    wanted = length > 0 ? length : Long.MAX_VALUE;
    write(0);
  }

  @Override
  public void setContentLength(int length) {
    announce(length);
    super.setContentLength(length);
  }

  @Override
  public void setContentLengthLong(long length) {
    announce(length);
    super.setContentLengthLong(length);
  }

  @Override
  public ServletOutputStream getOutputStream() throws IOException {
    if (stream == null) {
      stream = new Stream(super.getOutputStream());
    }
    return stream;
  }

  @Override
  public PrintWriter getWriter() throws IOException {
    if (writer == null) {
      writer = new PrintWriter(new Characters(super.getWriter()));
    }
    return writer;
  }

  @Override
  public void flushBuffer() throws IOException {
    flushLineage();
    super.flushBuffer();
  }

  @Override
  public void sendError(int status) throws IOException {
    sendLineage(status);
    super.sendError(status);
  }

  @Override
  public void sendError(int status, String message) throws IOException {
    sendLineage(status);
    super.sendError(status, message);
  }

  @Override
  public void sendRedirect(String location) throws IOException {
    sendLineage(SC_FOUND);
    super.sendRedirect(location);
  }

  /** Also the header: what was in ours is put back. */
  @Override
  public synchronized void reset() {
    List<String> ours = List.copyOf(super.getHeaders(Carriers.LINEAGE_HEADER));
    super.reset();
    startAnew(getResponse());
    applications.clear();
    ours.forEach(value -> super.addHeader(Carriers.LINEAGE_HEADER, value));
  }

  /** Writes by this response from here on: the container has emptied its own, and a stream or writer serves no longer. */
  void startAnew(ServletResponse below) {
    setResponse(below);
    written = 0;
    wanted = Long.MAX_VALUE;
    isSized = false;
    stream = null;
    writer = null;
  }

  @Override
  public void resetBuffer() {
    super.resetBuffer();
    written = 0;
  }

  @Override
  public void setHeader(String name, String value) {
    if (Carriers.LINEAGE_HEADER.equalsIgnoreCase(name)) {
      applications.clear();
      applications.add(value);
    } else {
      announced(name, value);
      super.setHeader(name, value);
    }
  }

  @Override
  public void addHeader(String name, String value) {
    if (Carriers.LINEAGE_HEADER.equalsIgnoreCase(name)) {
      applications.add(value);
    } else {
      announced(name, value);
      super.addHeader(name, value);
    }
  }

  @Override
  public void setIntHeader(String name, int value) {
    announced(name, Integer.toString(value));
    super.setIntHeader(name, value);
  }

  @Override
  public void addIntHeader(String name, int value) {
    announced(name, Integer.toString(value));
    super.addIntHeader(name, value);
  }

  private void announced(String name, String value) {
    if ("Content-Length".equalsIgnoreCase(name)) {
      try {
        announce(Long.parseLong(value));
      } catch (NumberFormatException error) {
        // the container will say what it thinks of it
      }
    }
  }

  private final class Stream extends ServletOutputStream {
    private final ServletOutputStream inner;

    Stream(ServletOutputStream inner) {
      this.inner = inner;
    }

    @Override
    public void write(int octet) throws IOException {
      InboundResponse.this.write(1);
      inner.write(octet);
    }

    @Override
    public void write(byte[] octets, int from, int length) throws IOException {
      InboundResponse.this.write(length);
      inner.write(octets, from, length);
    }

    @Override
    public void flush() throws IOException {
      flushLineage();
      inner.flush();
    }

    @Override
    public void close() throws IOException {
      sendLineage();
      inner.close();
    }

    @Override
    public boolean isReady() {
      return inner.isReady();
    }

    @Override
    public void setWriteListener(WriteListener listener) {
      inner.setWriteListener(listener);
    }
  }

  private final class Characters extends FilterWriter {
    Characters(Writer inner) {
      super(inner);
    }

    @Override
    public void write(int character) throws IOException {
      InboundResponse.this.write(MOST_BYTES_A_CHARACTER);
      super.write(character);
    }

    @Override
    public void write(char[] characters, int from, int length) throws IOException {
      InboundResponse.this.write((long) length * MOST_BYTES_A_CHARACTER);
      super.write(characters, from, length);
    }

    @Override
    public void write(String text, int from, int length) throws IOException {
      InboundResponse.this.write((long) length * MOST_BYTES_A_CHARACTER);
      super.write(text, from, length);
    }

    @Override
    public void flush() throws IOException {
      flushLineage();
      super.flush();
    }

    @Override
    public void close() throws IOException {
      sendLineage();
      super.close();
    }
  }
}
