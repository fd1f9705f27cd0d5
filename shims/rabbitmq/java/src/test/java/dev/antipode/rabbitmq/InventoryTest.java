package dev.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import dev.antipode.testing.Inventory;
import org.junit.jupiter.api.Test;

/** Every public method of the client's interfaces is known here (SHIM-51). */
class InventoryTest {
  @Test
  void connection() {
    assertThat(Inventory.of(Connection.class)
        .named("gives a wrapped channel", "createChannel openChannel")
        .named(
            "neither",
            "abort addBlockedListener addShutdownListener clearBlockedListeners close getAddress "
                + "getChannelMax getClientProperties getClientProvidedName getCloseReason getExceptionHandler "
                + "getFrameMax getHeartbeat getId getPort getServerProperties isOpen notifyListeners "
                + "removeBlockedListener removeShutdownListener setId")
        .differences()).isEmpty();
  }

  @Test
  void channel() {
    assertThat(Inventory.of(Channel.class)
        .named("publishes", "basicPublish")
        .named(
            "ends what was published",
            "txSelect txCommit txRollback waitForConfirms waitForConfirmsOrDie close abort")
        .named("gives messages in their scopes", "basicConsume setDefaultConsumer")
        .named("gives a message to AntipodeRabbit.handle", "basicGet")
        .named("ends a message", "basicAck basicNack basicReject basicRecover")
        .named("gives the wrapped one", "getConnection")
        .named("kept for confirms", "clearConfirmListeners clearReturnListeners")
        .named("goes round, as the page says: methods of AMQP by hand", "asyncCompletableRpc asyncRpc rpc")
        .named(
            "neither",
            "addConfirmListener addReturnListener addShutdownListener basicCancel basicQos confirmSelect "
                + "consumerCount exchangeBind exchangeBindNoWait exchangeDeclare exchangeDeclareNoWait "
                + "exchangeDeclarePassive exchangeDelete exchangeDeleteNoWait exchangeUnbind "
                + "exchangeUnbindNoWait getChannelNumber getCloseReason getDefaultConsumer getNextPublishSeqNo "
                + "isOpen messageCount notifyListeners queueBind queueBindNoWait queueDeclare "
                + "queueDeclareNoWait queueDeclarePassive queueDelete queueDeleteNoWait queuePurge queueUnbind "
                + "removeConfirmListener removeReturnListener removeShutdownListener")
        .differences()).isEmpty();
  }
}
