package dev.antipode.internal.engine;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;

/** The last one is settled while the barrier is cancelled (BAR-32). */
@JCStressTest
@Outcome(id = Race.STANDS, expect = Expect.ACCEPTABLE, desc = "Released once, and not forgotten; what passed stood.")
@Outcome(expect = Expect.FORBIDDEN, desc = "What may never be.")
@State
public class SettleAndCancel {
  private final Race race = new Race();

  /** What comes before. */
  public SettleAndCancel() {
    race.park();
    race.ask(1);
    race.replace(1);
  }

  /** One thread. */
  @Actor
  public void one() {
    race.ask(0);
  }

  /** The other one. */
  @Actor
  public void other() {
    race.cancel();
  }

  /** What came of it. */
  @Arbiter
  public void judge(L_Result result) {
    result.r1 = race.judge();
  }
}
