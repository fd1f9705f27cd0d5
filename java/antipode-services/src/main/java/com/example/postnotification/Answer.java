package com.example.postnotification;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** What a service answers. */
record Answer(int status, String type, Map<String, String> headers, byte[] body) {
  static final ObjectMapper JSON = new ObjectMapper();

  static final Answer NOTHING_HERE = text(404, "nothing answers here");

  static Answer json(int status, Object value) {
    try {
      return new Answer(status, "application/json", Map.of(), JSON.writeValueAsBytes(value));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException(error);
    }
  }

  static Answer text(int status, String words) {
    return new Answer(status, "text/plain", Map.of(), words.getBytes(StandardCharsets.UTF_8));
  }
}
