package dev.antipode.internal.engine;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;

/** What is parked first is settled while the others are parked (BAR-63). */
@JCStressTest
@Outcome(id = Race.STANDS, expect = Expect.ACCEPTABLE, desc = "Released once, and not forgotten; what passed stood.")
@Outcome(expect = Expect.FORBIDDEN, desc = "What may never be.")
@State
public class ParkAndSettle {
  private final Race race = new Race();

  /** One thread. */
  @Actor
  public void one() {
    race.park();
  }

  /** The other one. */
  @Actor
  public void other() {
    race.ask(0);
    race.replace(0);
    race.ask(1);
  }

  /** What came of it. */
  @Arbiter
  public void judge(L_Result result) {
    result.r1 = race.judge();
  }
}
