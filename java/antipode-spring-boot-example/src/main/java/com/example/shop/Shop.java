package com.example.shop;

import org.springframework.amqp.core.Queue;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

/**
 * A shop: a request writes a purchase and says so in a queue; a listener writes that it was packed and says so in the next. Of
 * Antipode there is nothing here but the starter, and {@code application.properties}.
 */
@SpringBootApplication
public class Shop {
  /** A configuration. */
  public Shop() {}

  /** Starts it. */
  public static void main(String[] arguments) {
    SpringApplication.run(Shop.class, arguments);
  }

  @Bean
  Queue purchasesQueue() {
    return new Queue("purchases");
  }

  @Bean
  Queue parcelsQueue() {
    return new Queue("parcels");
  }
}
