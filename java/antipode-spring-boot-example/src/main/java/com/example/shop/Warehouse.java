package com.example.shop;

import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

/** Packs what was bought. */
@Component
class Warehouse {
  private final Purchases purchases;

  Warehouse(Purchases purchases) {
    this.purchases = purchases;
  }

  @RabbitListener(queues = "purchases")
  @SendTo("parcels")
  @Transactional
  String pack(String id) {
    purchases.findById(id).orElseThrow().pack();
    return id;
  }
}
