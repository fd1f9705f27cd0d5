package dev.antipode.testing.conformance;

import dev.antipode.testing.StoreUnderTest;

/** What all classes of cases have: the store of the case that runs. */
public interface ConformanceCases {
  /** The store under test, begun for this case. */
  StoreUnderTest store();
}
