package com.example.postnotification;

import jakarta.servlet.http.HttpServletRequest;

/** One of the application's services. */
interface Service {
  /** Handles a request, in its scope and its trace; any error is answered 500. */
  Answer answer(HttpServletRequest request, byte[] body) throws Exception;

  /** Answers the benchmark's own question. */
  default Answer control(HttpServletRequest request) {
    return Answer.NOTHING_HERE;
  }

  /** Begins what goes on without requests; returns when it does. */
  default void start() throws Exception {}

  /** Whether a request is of this kind. */
  static boolean is(HttpServletRequest request, String method, String path) {
    return request.getMethod().equals(method) && request.getRequestURI().equals(path);
  }
}
