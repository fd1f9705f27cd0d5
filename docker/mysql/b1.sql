-- The replica: nothing of its own in its history, and all of the primary's by way of the link.
RESET BINARY LOGS AND GTIDS;
CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'toxiproxy', SOURCE_PORT = 21003, SOURCE_USER = 'lab_replication',
  SOURCE_PASSWORD = 'lab-replication', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1,
  SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 0, SOURCE_HEARTBEAT_PERIOD = 1;
START REPLICA;
