package dev.antipode;

/**
 * Why a lineage is not complete: what happened in this process.
 *
 * @param reason one word: {@code malformed}, {@code budget}, {@code pending}, {@code untrusted}, {@code seal} …
 * @param store the store it happened to; empty where that is not known
 * @param detail what happened, in a sentence; may be empty
 */
public record Gap(String reason, String store, String detail) {

  /** The code of the reason, one of spec/data/messages.json (OBS-14). */
  public String code() {
    return switch (reason) {
      case "branch" -> "AP210";
      case "budget" -> "AP510";
      case "implausible" -> "AP407";
      case "malformed" -> "AP405";
      case "oversize" -> "AP408";
      case "pending" -> "AP411";
      case "rights" -> "AP506";
      case "seal", "untrusted" -> "AP403";
      case "streaming" -> "AP416";
      case "unanswered" -> "AP417";
      case "unscoped" -> "AP418";
      case "unfit" -> "AP208";
      default -> "AP517"; // a shim's word: a write whose version it could not tell
    };
  }
}
