package com.example.shop;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

/** What somebody bought. */
@Entity
public class Purchase {
  @Id
  private String id;
  private boolean packed;

  /** For JPA. */
  protected Purchase() {}

  Purchase(String id) {
    this.id = id;
  }

  void pack() {
    packed = true;
  }

  boolean isPacked() {
    return packed;
  }
}
