// The files of records and histories (REC-25).
#include "engine/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace antipode::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kRoom = 1U << 20U;

class PrivateFiles : public ::testing::Test {
 protected:
  PrivateFiles() {
    std::string name = (fs::temp_directory_path() / "private-XXXXXX").string();
    root = mkdtemp(name.data());
    folder = root / "records";
  }
  ~PrivateFiles() override { fs::remove_all(root); }

  static unsigned ModeOf(const fs::path& path) {
    struct stat found {};
    EXPECT_EQ(stat(path.c_str(), &found), 0);
    return found.st_mode & 0777U;
  }

  static std::string ContentsOf(const fs::path& path) {
    std::ostringstream contents;
    contents << std::ifstream(path).rdbuf();
    return contents.str();
  }

  fs::path root;
  fs::path folder;
};

TEST_F(PrivateFiles, AreReadByNobodyElse_REC_25) {
  const mode_t before = umask(0);
  PrivateFile file(folder, "a.jsonl", kRoom);
  umask(before);
  ASSERT_EQ(file.refused(), "");
  EXPECT_TRUE(file.Append("one\n"));
  EXPECT_EQ(ModeOf(folder), 0700U);
  EXPECT_EQ(ModeOf(file.path()), 0600U);
}

TEST_F(PrivateFiles, GoOnWhereThisProcessLeftThem_REC_25) {
  EXPECT_TRUE(PrivateFile(folder, "a.jsonl", kRoom).Append("one\n"));
  PrivateFile again(folder, "a.jsonl", kRoom);
  EXPECT_EQ(again.size(), 4U);
  EXPECT_TRUE(again.Append("two\n"));
  EXPECT_EQ(ContentsOf(folder / "a.jsonl"), "one\ntwo\n");
}

TEST_F(PrivateFiles, FollowNoLinkAndTakeNobodysFile_REC_25) {
  fs::create_directory(folder);
  std::ofstream(root / "precious") << "theirs";
  fs::create_symlink(root / "precious", folder / "a.jsonl");
  std::ofstream(folder / "a-2.jsonl") << "theirs, too";
  PrivateFile file(folder, "a.jsonl", kRoom);
  ASSERT_EQ(file.refused(), "");
  EXPECT_EQ(file.path(), (folder / "a-3.jsonl").string());
  EXPECT_TRUE(file.Append("ours\n"));
  EXPECT_EQ(ContentsOf(root / "precious"), "theirs");
  EXPECT_EQ(ContentsOf(folder / "a-2.jsonl"), "theirs, too");
}

TEST_F(PrivateFiles, BeginNoNewOneInAFullFolder_REC_25) {
  EXPECT_TRUE(PrivateFile(folder, "a.jsonl", 4).Append("one\n"));
  EXPECT_NE(PrivateFile(folder, "b.jsonl", 4).refused().find("ANTIPODE_RECORDS_FOLDER_MIB"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "b.jsonl"));
  EXPECT_TRUE(PrivateFile(folder, "a.jsonl", 4).Append("two\n"));  // one that was begun has a bound of its own
}

TEST_F(PrivateFiles, SayWhyTheyCannotBe_REC_25) {
  std::ofstream(root / "file") << "no folder";
  EXPECT_NE(PrivateFile(root / "file" / "records", "a.jsonl", kRoom).refused(), "");
}

}  // namespace
}  // namespace antipode::testing
