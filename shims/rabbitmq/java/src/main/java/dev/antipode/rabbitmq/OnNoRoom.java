package dev.antipode.rabbitmq;

/** What happens to a message whose headers leave no room for its lineage: they would fill a frame (PROP-19). */
public enum OnNoRoom {
  /** It is sent without its lineage; where there is room for that much, with the mark that something is missing. */
  SEND,
  /** {@link dev.antipode.ConfigurationException}, before anything is sent. */
  RAISE
}
