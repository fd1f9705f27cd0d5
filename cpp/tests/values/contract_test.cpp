// What holds of the shims as files: each knows its own store and the core alone, and has its page (SHIM-22, SHIM-23,
// EPOCH-22).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace antipode::testing {
namespace {

namespace fs = std::filesystem;

const fs::path& Repository() {
  static const auto& root = *new fs::path(fs::path(ANTIPODE_VECTORS).parent_path().parent_path());
  return root;
}

std::string TextOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The stores that have a shim in C++.
std::vector<std::string> ShimmedStores() {
  std::vector<std::string> stores;
  for (const auto& folder : fs::directory_iterator(Repository() / "shims")) {
    if (fs::exists(folder.path() / "cpp" / "CMakeLists.txt")) stores.push_back(folder.path().filename().string());
  }
  return stores;
}

std::vector<fs::path> SourcesIn(const fs::path& folder) {
  std::vector<fs::path> sources;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    const std::string kind = each.path().extension().string();
    if (kind == ".h" || kind == ".cpp") sources.push_back(each.path());
  }
  return sources;
}

bool Includes(const fs::path& source, const std::string& store) {
  return TextOf(source).find("#include \"antipode/" + store + ".h\"") != std::string::npos;
}

TEST(Contract, AShimIncludesNoOtherShimAndTheCoreNone_SHIM_23) {
  const std::vector<std::string> stores = ShimmedStores();
  ASSERT_GE(stores.size(), 2U);
  for (const std::string& store : stores) {
    const std::vector<fs::path> own = SourcesIn(Repository() / "shims" / store / "cpp");
    EXPECT_TRUE(std::any_of(own.begin(), own.end(), [&](const fs::path& each) { return Includes(each, store); }))
        << store;
    for (const std::string& other : stores) {
      for (const fs::path& source : own) EXPECT_TRUE(other == store || !Includes(source, other)) << source;
    }
    for (const char* core : {"cpp/include", "cpp/src"}) {
      for (const fs::path& source : SourcesIn(Repository() / core)) EXPECT_FALSE(Includes(source, store)) << source;
    }
    // Adding it has changed nothing outside its folder: the build finds it there.
    EXPECT_EQ(TextOf(Repository() / "cpp" / "CMakeLists.txt").find(store), std::string::npos) << store;
  }
}

TEST(Contract, APublicHeaderIncludesPublicOnesAlone) {
  const std::string before = "#include \"";
  int includes = 0;
  for (const fs::path& header : SourcesIn(Repository() / "cpp/include")) {
    const std::string text = TextOf(header);
    for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1), ++includes) {
      const std::string name = text.substr(at + before.size(), text.find('"', at + before.size()) - at - before.size());
      EXPECT_TRUE(fs::exists(Repository() / "cpp/include" / name)) << header << ": " << name;
    }
  }
  EXPECT_GE(includes, 100);
}

TEST(Contract, EachStoreHasItsPage_SHIM_22_EPOCH_22) {
  for (const std::string& store : ShimmedStores()) {
    const std::string page = TextOf(Repository() / "shims" / store / "README.md");
    for (const char* heading : {"What a version is", "What visible means", "What it costs", "What it needs", "Failover",
                                "What it cannot do"}) {
      EXPECT_NE(page.find("\n## " + std::string(heading)), std::string::npos) << store << ": " << heading;
    }
    EXPECT_NE(page.find("C++"), std::string::npos) << store;
    EXPECT_NE(page.find("restore"), std::string::npos) << store;
  }
  // Marks prove nothing in a partial copy.
  EXPECT_NE(TextOf(Repository() / "shims/redis/README.md").find("**a partial copy**"), std::string::npos);
}

}  // namespace
}  // namespace antipode::testing
