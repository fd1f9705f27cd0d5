// A replica set of one voter, in region A: a partition of region B neither stops writes nor moves the primary.
const members = [
  { _id: 0, host: "mongodb-a:27017", priority: 1 },
  { _id: 1, host: "mongodb-b1:27018", priority: 0, votes: 0 },
];
try {
  rs.status();
} catch (error) {
  rs.initiate({ _id: "antipode", members: members });
}
while (!rs.status().members.every((member) => ["PRIMARY", "SECONDARY"].includes(member.stateStr))) {
  sleep(200);
}
