/**
 * RabbitMQ for Antipode: {@link dev.antipode.rabbitmq.AntipodeRabbit#wrap(com.rabbitmq.client.Channel, String)} returns a
 * channel whose messages carry the lineage, and whose consumers run in a scope of their message. The store's page: {@code
 * shims/rabbitmq/README.md}.
 */
package dev.antipode.rabbitmq;

