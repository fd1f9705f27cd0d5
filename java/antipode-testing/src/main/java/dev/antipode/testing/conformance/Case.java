package dev.antipode.testing.conformance;

import dev.antipode.shim.Capabilities.Versions;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Test;

/** One case of the conformance kit. Its name in lists and on pages is the method's, with underscores. */
@Test
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface Case {
  /** The kinds of version that it is for; all of them where none is named. */
  Versions[] only() default {};

  /** Whether it is for queues, too: messages are not overwritten, deleted or read again. */
  boolean queues() default true;

  /** Whether it promotes, restarts or re-points servers. */
  boolean spoils() default false;
}
