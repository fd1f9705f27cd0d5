-- The primary: who replicates it. It goes into the log, and the replica has it from there.
CREATE USER 'lab_replication'@'%' IDENTIFIED BY 'lab-replication';
GRANT REPLICATION SLAVE ON *.* TO 'lab_replication'@'%';
CREATE DATABASE IF NOT EXISTS lab;
