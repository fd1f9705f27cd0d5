// What a statement may do, by its text (spec SHIM-6, SHIM-11): what is not sure counts as a write.
#include "statements.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tokens.h"
#include "unsure.h"

namespace antipode::postgresql {
namespace {

constexpr std::array<std::pair<const char*, Kind>, 7> kKinds{{{"read", Kind::kRead},
                                                             {"session", Kind::kSession},
                                                             {"write", Kind::kWrite},
                                                             {"maybe", Kind::kMaybe},
                                                             {"commit", Kind::kCommit},
                                                             {"rollback", Kind::kRollback},
                                                             {"prepare", Kind::kPrepare}}};

std::string Upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

TEST(Statements, AreJudgedAsInTheOtherLanguages) {
  std::ifstream file(ANTIPODE_STATEMENTS);
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const auto& [name, kind] : kKinds) {
    ASSERT_FALSE(all.at(name).empty()) << name;
    for (const std::string text : all.at(name)) {
      const std::string upper = kind == Kind::kMaybe ? text : Upper(text);
      for (const std::string& each : {text, upper}) {
        EXPECT_TRUE(Classify(each) == kind || (kind == Kind::kMaybe && IsUnsure(Classify(each)))) << each;
      }
    }
  }
  for (const std::string text : all.at("end_prepared")) {
    const Kind kind = Classify(text);
    EXPECT_TRUE(kind == Kind::kCommitPrepared || kind == Kind::kRollbackPrepared) << text;
  }
}

TEST(Statements, NestedCommentsAndWhatDoesNotEnd) {
  EXPECT_EQ(Classify("/* /* nested */ */ INSERT INTO a VALUES (';')"), Kind::kWrite);
  for (const char* text :
       {"SELECT 'open", "SELECT /* open", "SELECT /* /* */ open", "SELECT $x$ open", "COPY posts TO PROGRAM 'cat'"}) {
    EXPECT_TRUE(IsUnsure(Classify(text))) << text;
  }
}

// SCOPE-25: what may commit, and leave another transaction open.
TEST(Statements, ThatMayCommitWithinATransaction) {
  for (const char* text :
       {"COMMIT AND CHAIN", "end work and chain", "COMMIT; BEGIN", "SELECT 1; SELECT 2", "SELECT 'open"}) {
    EXPECT_EQ(Classify(text), Kind::kMayCommit) << text;
  }
  for (const char* text : {"ROLLBACK AND CHAIN", "CALL p()", "CREATE TABLE a (b integer)", "SELECT f();"}) {
    EXPECT_EQ(Classify(text), Kind::kMaybe) << text;
  }
}

// SHIM-6: in some clients' encodings a character's second octet looks like a backslash (here SJIS) or a bar.
TEST(Statements, SignsThatAreHalvesOfCharacters) {
  for (const char* text : {"SELECT E'\x95\\', w('k')", "SELECT \x83|('k')", "SELECT \x83| ('k')",
                           "SELECT \x83|/**/('k')", "SELECT \x83| --\n('k')"}) {
    EXPECT_TRUE(IsUnsure(Classify(text))) << text;
  }
  EXPECT_EQ(Classify("SELECT 'ann\xc3\xa9" "e', 'Hauptstra\xc3\x9f" "e'"), Kind::kRead);
  EXPECT_EQ(Classify("SELECT '\xc3\xa9', '[\xe8\xa1\xa8]' FROM \"\xe8\xa1\xa8\""), Kind::kRead);
}

// What goes on in a later line goes on with its escapes.
TEST(Statements, LiteralsOfSeveralLines) {
  EXPECT_EQ(Classify("SELECT E'a' -- b\n'\\'; nextval(1), '"), Kind::kRead);
  EXPECT_TRUE(IsUnsure(Classify("SELECT E'a' '\\'; nextval(1), '")));
  EXPECT_EQ(Classify("SELECT 'a'\n'b', nextval(1)"), Kind::kMaybe);
  EXPECT_EQ(Divide("'a'\n'b'", false).all.size(), 1U);
  EXPECT_EQ(Divide("'a' 'b'", false).all.size(), 2U);
  EXPECT_EQ(Divide("'a' /* \n */ 'b'", false).all.size(), 2U);
  EXPECT_FALSE(Divide("'a'\n'b", false).sure);
}

TEST(Statements, EndsOfTransactionsAreTold) {
  EXPECT_EQ(Classify("COMMIT PREPARED 'a'"), Kind::kCommitPrepared);
  EXPECT_EQ(Classify("rollback prepared 'a'"), Kind::kRollbackPrepared);
}

TEST(Statements, ThatNameAPreparedTransaction) {
  const auto name = [](const char* text) { return TransactionIn(Classify(text), text); };
  EXPECT_EQ(name("PREPARE TRANSACTION 'a'"), "'a'");
  EXPECT_EQ(name("commit prepared 'it''s';"), "'it''s'");
  EXPECT_EQ(name("ROLLBACK PREPARED\n'a b' "), "'a b'");
  for (const char* text :
       {"PREPARE TRANSACTION E'a'", "COMMIT PREPARED 'a\\'", "COMMIT PREPARED /* 'x' */ 'a'",
        "COMMIT PREPARED 'a' -- '", "COMMIT PREPARED U&'a'", "COMMIT PREPARED $$a$$", "COMMIT", "SELECT 'a'"}) {
    EXPECT_EQ(name(text), "") << text;
  }
}

// SCOPE-24: nobody tells which of several statements was done, and under which name.
TEST(Statements, OfSeveralThatMayPrepareATransaction) {
  const auto may = [](const char* text) { return MayPrepare(Classify(text), text); };
  for (const char* text :
       {"BEGIN; PREPARE /* */ TRANSACTION 'a'", "INSERT INTO t VALUES (1); prepare\ntransaction 'a';",
        "PREPARE TRANSACTION 'a'; SELECT 1", "SELECT 1; SELECT 'open"}) {
    EXPECT_TRUE(may(text)) << text;
  }
  for (const char* text : {"PREPARE TRANSACTION 'a'", "BEGIN; INSERT INTO t VALUES ('prepare transaction'); COMMIT",
                           "SELECT 1; PREPARE s AS SELECT 1", "COMMIT AND CHAIN"}) {
    EXPECT_FALSE(may(text)) << text;
  }
}

// SHIM-43: a name that is spelled by numbers is looked for in vain.
TEST(Statements, ThatSpellANameAreUnsure) {
  for (const char* text :
       {"SELECT * FROM U&\"\\006Cogged\"", "TABLE u&\"a\"", "SELECT U&\"d!0061\" UESCAPE '!' FROM t"}) {
    EXPECT_TRUE(IsUnsure(Classify(text))) << text;
  }
  for (const char* text : {"SELECT u & \"a\" FROM t", "SELECT U&'d' FROM t"}) {
    EXPECT_EQ(Classify(text), Kind::kRead) << text;
  }
}

// SHIM-43: a text that looks like a read, and names what may write.
TEST(Statements, ThatADatabaseMakesUnsure) {
  std::ifstream file(ANTIPODE_STATEMENTS);
  const nlohmann::json all = nlohmann::json::parse(file);
  std::string question;
  for (const std::string line : all.at("unsure_question")) question += (question.empty() ? "" : "\n") + line;
  EXPECT_EQ(question, kUnsureQuestion);
  for (const auto& vector : all.at("unsure")) {
    const UnsureNames names(vector.at("has").get<std::vector<std::pair<std::string, std::string>>>());
    for (const std::string text : vector.at("unsure")) {
      EXPECT_EQ(Classify(text), Kind::kRead) << text;
      EXPECT_TRUE(names.AreIn(text)) << text;
    }
    for (const std::string text : vector.at("sure")) EXPECT_FALSE(names.AreIn(text)) << text;
  }
}

// SHIM-44: whatever may give data, or write what it has read, waits.
TEST(Statements, ThatMayRead) {
  std::ifstream file(ANTIPODE_STATEMENTS);
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const std::string text : all.at("may_read")) EXPECT_TRUE(MayRead(Classify(text), text)) << text;
  for (const std::string text : all.at("blind")) EXPECT_FALSE(MayRead(Classify(text), text)) << text;
}

TEST(Statements, PreparedNamesMayComeToMeanAnother) {
  for (const char* text :
       {"DEALLOCATE s", "discard all", "PREPARE s AS SELECT 1", "SELECT f()", "SELECT 1; DEALLOCATE s"}) {
    EXPECT_TRUE(MayRename(text)) << text;
  }
  for (const char* text : {"SELECT 1", "INSERT INTO a VALUES (1)", "COMMIT", ""}) EXPECT_FALSE(MayRename(text)) << text;
}

// REC-12: dry-run follows reads of data, and no question for a setting or an expression.
TEST(Statements, ThatReadFromSomething) {
  for (const char* text : {"SELECT 1 FROM posts", "select value\nfrom posts", "WITH a AS (SELECT 1 FROM b) SELECT 2",
                           "FETCH ALL FROM c"}) {
    EXPECT_TRUE(ReadsData(text)) << text;
  }
  for (const char* text :
       {"SELECT 1", "SHOW server_version", "SELECT 'from'", "SELECT 1 -- from posts", "SELECT \"from\""}) {
    EXPECT_FALSE(ReadsData(text)) << text;
  }
}

// HIST-36: what a recorded history is told of as of reads.
TEST(Statements, ThatAreNoted) {
  std::ifstream file(ANTIPODE_STATEMENTS);
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const std::string text : all.at("noted")) EXPECT_TRUE(IsNoted(text)) << text;
  for (const std::string text : all.at("not_noted")) EXPECT_FALSE(IsNoted(text)) << text;
}

}  // namespace
}  // namespace antipode::postgresql
