package dev.antipode.internal.trust;

/**
 * Whether a lineage passes.
 *
 * @param accepted whether it does
 * @param text it without its seal; to be parsed only where it is accepted (TRUST-1)
 * @param reason why not, where it does not
 * @param about the address, host or state of a seal that decided
 * @param header the name of the forwarding header that decided
 */
public record Decision(boolean accepted, String text, Reason reason, String about, String header) {
  static final Decision YES = new Decision(true, "", Reason.NONE, "", "");

  static Decision yes(String text) {
    return new Decision(true, text, Reason.NONE, "", "");
  }

  static Decision no(Reason reason) {
    return no(reason, "");
  }

  static Decision no(Reason reason, String about) {
    return new Decision(false, "", reason, about, "");
  }

  static Decision no(Addresses.Hop hop) {
    return new Decision(false, "", Reason.FORWARDED, hop.address(), hop.header());
  }
}
