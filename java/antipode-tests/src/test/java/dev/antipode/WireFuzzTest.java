package dev.antipode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.antipode.internal.model.Names;
import dev.antipode.internal.model.WireForm;
import java.util.regex.Pattern;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.Size;

/** Any text and any octets against the grammar as the specification writes it (WIRE-1 to WIRE-16, WIRE-27, WIRE-38). */
class WireFuzzTest {
  private static final String NCHAR = "(?:[A-Za-z0-9-]|_(?!2D|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])[0-9A-F]{2})";
  private static final String COUNTER = "(?:0|[1-9][0-9]{0,19})";
  private static final String ENTRY = "(?:\\." + NCHAR + "+\\._\\." + NCHAR + "+"
      + "|\\.\\." + NCHAR + "{1,32}\\." + COUNTER
      + "|\\." + NCHAR + "+\\." + NCHAR + "{0,32}\\." + COUNTER + ")";
  private static final Pattern GRAMMAR = Pattern.compile(
      "1(?:~" + NCHAR + "{1,63}" + ENTRY + "+)*(?:~_\\.[a-z0-9]+(?:\\." + NCHAR + "*)*)*");

  @Provide
  Arbitrary<String> likelyTexts() {
    return Arbitraries.of("1", "~", "s", "t", ".", "..", "e", "_", "_2E", "_41", "_i", "_.i", "_.x", "_.h", "5", "05",
            "18446744073709551615", "18446744073709551616", "~s..e.5", "~t.k._.m", "~a-b.k..7", " ", "A", "é")
        .list().ofMaxSize(12).map(parts -> "1" + String.join("", parts));
  }

  private static boolean isAccepted(String text) {
    try {
      WireForm.split(text);
      return true;
    } catch (MalformedLineageException e) {
      return false;
    }
  }

  /** WIRE-1: never another exception, and nothing that the grammar does not have. */
  @Property(tries = 3000)
  void onlyTheGrammarIsRead(@ForAll("likelyTexts") String text) {
    boolean accepted = isAccepted(text);
    if (!GRAMMAR.matcher(text).matches()) {
      assertThat(accepted).as(text).isFalse();
    } else if (!accepted) {
      // Lexical rules beyond the grammar: WIRE-5, WIRE-9, WIRE-13, WIRE-15.
      assertThatThrownBy(() -> WireForm.split(text))
          .hasMessageMatching(".*(stands twice|not a store name|follows the seal|not a lineage).*");
    } else {
      Lineage lineage = Lineage.deserialize(text);
      assertThat(Lineage.deserialize(lineage.serialize())).isEqualTo(lineage);
    }
  }

  @Property(tries = 1000)
  void anyTextIsReadOrRefused(@ForAll String text) {
    isAccepted(text);
    isAccepted("1~" + text);
  }

  /** WIRE-2, WIRE-38: octets survive, also those that are no UTF-8. */
  @Property(tries = 1000)
  void octetsSurvive(@ForAll @Size(max = 60) byte[] octets) {
    String spelled = Names.spell(octets);
    assertThat(spelled).matches("(?:[A-Za-z0-9-]|_[0-9A-F]{2})*");
    assertThat(Names.isSpelled(spelled)).isTrue();
    assertThat(Names.unspell(spelled)).isEqualTo(octets);
    assertThat(Names.octets(Names.text(octets))).isEqualTo(octets);
    assertThat(Names.octetCount(Names.text(octets))).isEqualTo(octets.length);
  }

  /** WIRE-38: text is UTF-8. */
  @Property(tries = 1000)
  void textSurvives(@ForAll String text) {
    if (text.codePoints().noneMatch(c -> c >= 0xD800 && c <= 0xDFFF)) {
      assertThat(Names.unspellName(Names.spellName(text))).isEqualTo(text);
      assertThat(Names.octetCount(text)).isEqualTo(text.getBytes(java.nio.charset.StandardCharsets.UTF_8).length);
    }
  }

  /** WIRE-27: refused by length before anything else is looked at. */
  @Example
  void longTextsAreRefusedByTheirLength() {
    assertThatThrownBy(() -> WireForm.split("1" + "~s.k._.m".repeat(100_000)))
        .isInstanceOf(MalformedLineageException.class).hasMessageContaining("at most 4087");
  }

  /** OBS-5: a refusal shows no more than the beginning, and nothing that a terminal would act on. */
  @Example
  void refusalsAreShortAndPrintable() {
    assertThatThrownBy(() -> Lineage.deserialize("1~\u001b[31m" + "x".repeat(900)))
        .isInstanceOf(MalformedLineageException.class)
        .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(200).matches("\\p{Print}+"));
  }
}
