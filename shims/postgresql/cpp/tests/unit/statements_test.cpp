// What a statement may do, by its text (spec SHIM-6, SHIM-11): what is not sure counts as a write.
#include "statements.h"

#include <gtest/gtest.h>

namespace antipode::postgresql {
namespace {

TEST(Statements, ReadsAreToldFromWrites) {
  for (const char* text :
       {"SELECT 1", " select * from posts where key in ('a') -- ;\n", "/* insert */ SELECT count(*) FROM posts;", "BEGIN",
        "SET x = 1", "SHOW all", "VALUES (1)", "(SELECT 1)", "WITH a AS (SELECT 1) SELECT * FROM a", "", " ; ",
        "COPY posts TO STDOUT", "COPY (SELECT max(key) FROM posts) TO STDOUT", "ROLLBACK TO here", "FETCH 5 FROM c",
        "EXPLAIN SELECT 1", "SELECT pg_catalog.count(*) FROM a", "SELECT 'nextval(''s'')'", "SELECT $$nextval('s')$$",
        "SELECT $a$ ; nextval( $a$", "SELECT E'\\'; nextval(' ", "DECLARE c CURSOR FOR SELECT 1"}) {
    EXPECT_EQ(Classify(text), Kind::kRead) << text;
  }
  for (const char* text :
       {"INSERT INTO posts VALUES (1)", "update posts set a = 1;", "DELETE FROM posts", "MERGE INTO a USING b ON true",
        "WITH gone AS (DELETE FROM posts RETURNING *) SELECT * FROM gone", "/* /* nested */ */ INSERT INTO a VALUES (';')",
        "-- first\nDELETE FROM posts"}) {
    EXPECT_EQ(Classify(text), Kind::kWrite) << text;
  }
}

TEST(Statements, WhatIsNotSureMayWrite) {
  for (const char* text :
       {"SELECT nextval('s')", "SELECT own.count(1)", "SELECT \"count\"(1)", "CALL p()", "DO $$ BEGIN END $$",
        "CREATE TABLE a ()", "SELECT 1; SELECT 2", "COPY posts FROM STDIN", "COPY posts FROM '/a to b'",
        "COPY (DELETE FROM a RETURNING *) TO STDOUT", "SELECT * INTO a FROM b", "EXPLAIN ANALYZE DELETE FROM a", "EXECUTE s",
        "COMMIT AND CHAIN", "TRUNCATE a", "SELECT '/*', nextval('s'), '*/'", "SELECT '--', nextval('s')",
        "SELECT '\\', nextval('s'), '", "SELECT 'open", "SELECT /* open", "SELECT $x$ open", "\"quoted\"",
        "COPY posts TO PROGRAM 'cat'"}) {
    EXPECT_EQ(Classify(text), Kind::kMaybe) << text;
  }
}

TEST(Statements, EndsOfTransactionsAreTold) {
  EXPECT_EQ(Classify("COMMIT"), Kind::kCommit);
  EXPECT_EQ(Classify("end work;"), Kind::kCommit);
  EXPECT_EQ(Classify("COMMIT AND NO CHAIN"), Kind::kCommit);
  EXPECT_EQ(Classify("ROLLBACK"), Kind::kRollback);
  EXPECT_EQ(Classify("abort"), Kind::kRollback);
  EXPECT_EQ(Classify("PREPARE TRANSACTION 'a'"), Kind::kPrepare);
  EXPECT_EQ(Classify("PREPARE s AS INSERT INTO a VALUES (1)"), Kind::kRead);
  EXPECT_EQ(Classify("COMMIT PREPARED 'a'"), Kind::kCommitPrepared);
  EXPECT_EQ(Classify("rollback prepared 'a'"), Kind::kRollbackPrepared);
}

TEST(Statements, PreparedNamesMayComeToMeanAnother) {
  for (const char* text : {"DEALLOCATE s", "discard all", "PREPARE s AS SELECT 1", "SELECT f()", "SELECT 1; DEALLOCATE s"}) {
    EXPECT_TRUE(MayRename(text)) << text;
  }
  for (const char* text : {"SELECT 1", "INSERT INTO a VALUES (1)", "COMMIT", ""}) EXPECT_FALSE(MayRename(text)) << text;
}

}  // namespace
}  // namespace antipode::postgresql
