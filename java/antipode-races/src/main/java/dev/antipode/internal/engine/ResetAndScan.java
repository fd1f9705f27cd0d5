package dev.antipode.internal.engine;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;

/**
 * Who compares finds what does not stand and opens it; it is settled, so that another one compares, while its server is led
 * elsewhere again (BAR-63).
 */
@JCStressTest
@Outcome(id = Race.STANDS, expect = Expect.ACCEPTABLE, desc = "Released once, and not forgotten; what passed stood.")
@Outcome(expect = Expect.FORBIDDEN, desc = "What may never be.")
@State
public class ResetAndScan {
  private final Race race = new Race();

  /** What comes before. */
  public ResetAndScan() {
    race.park();
    race.ask(0);
    race.replace(0);
  }

  /** One thread. */
  @Actor
  public void one() {
    race.ask(1);
    race.replace(0);
    race.ask(1);
  }

  /** The other one. */
  @Actor
  public void other() {
    race.replace(1);
    race.ask(0);
    race.ask(0);
  }

  /** What came of it. */
  @Arbiter
  public void judge(L_Result result) {
    result.r1 = race.judge();
  }
}
