package com.example.shop;

import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Where purchases come in. */
@RestController
class Checkout {
  private final Purchases purchases;
  private final RabbitTemplate template;

  Checkout(Purchases purchases, RabbitTemplate template) {
    this.purchases = purchases;
    this.template = template;
  }

  @PostMapping("/purchases/{id}")
  String buy(@PathVariable String id) {
    purchases.save(new Purchase(id)); // committed when this returns
    template.convertAndSend("purchases", id);
    return id;
  }
}
