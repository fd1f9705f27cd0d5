package dev.antipode.redis;

/**
 * Who our own connections are.
 *
 * @param user the user's name, or null for the default one
 * @param password its password
 */
record Credentials(String user, String password) {
  @Override
  public String toString() {
    return "Credentials[user=" + user + "]"; // never the password
  }
}
