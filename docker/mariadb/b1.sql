-- The replica: nothing of its own in its history, and all of the primary's by way of the link.
RESET MASTER;
SET GLOBAL gtid_slave_pos = '';
CHANGE MASTER TO MASTER_HOST = 'toxiproxy', MASTER_PORT = 21002, MASTER_USER = 'lab_replication',
  MASTER_PASSWORD = 'lab-replication', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 1;
START SLAVE;
