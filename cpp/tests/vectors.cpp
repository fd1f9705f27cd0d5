#include "vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "model/lineage_rep.h"
#include "model/section.h"

namespace antipode::testing {
namespace {

std::filesystem::path Folder() { return ANTIPODE_VECTORS; }

Json ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

}  // namespace

void RunVectors(const std::string& kind, const std::function<void(const Json& vector)>& test) {
  const std::string name = kind + ".json";
  const Json file = ReadFile(Folder() / name);
  ASSERT_EQ(file.at("vectors"), 1) << name;
  ASSERT_EQ(file.at("kind"), kind) << name;
  ASSERT_FALSE(file.at("cases").empty()) << name << " has no cases";
  for (const Json& each : file.at("cases")) {
    SCOPED_TRACE(name + ", " + each.at("id").get<std::string>() + ": " + each.dump().substr(0, 600));
    test(each);
  }
}

std::vector<Json> CasesOf(const std::string& kind) { return ReadFile(Folder() / (kind + ".json")).at("cases"); }

std::vector<std::string> KindsOfVectors() {
  std::vector<std::string> kinds;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() == ".json") kinds.push_back(ReadFile(entry.path()).at("kind"));
  }
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

std::string FromHex(std::string_view hex) {
  std::string octets;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    octets += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return octets;
}

std::string ToHex(std::string_view octets) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : octets) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

std::string OctetsOf(const Json& object, const std::string& name) {
  const auto hex = object.find(name + "_hex");
  if (hex != object.end()) return FromHex(hex->get<std::string>());
  return object.at(name).get<std::string>();
}

Result<WriteId> EntryOf(const Json& entry) {
  Version version;
  if (entry.contains("mark") || entry.contains("mark_hex")) {
    version = Opaque{OctetsOf(entry, "mark")};
  } else {
    const auto digits = entry.at("counter").get<std::string>();
    std::size_t read = 0;
    std::uint64_t counter = 0;
    // C++ has no number beyond the range to make an identifier of: what a caller would write is refused by the
    // language.
    try {
      counter = std::stoull(digits, &read);
    } catch (const std::exception&) {
      read = 0;
    }
    if (read != digits.size() || digits[0] == '-') {
      return Error{ErrorCode::kConfiguration, "AP501", "no unsigned number of 64 bits: " + digits};
    }
    version = Ordered{OctetsOf(entry, "epoch"), counter};
  }
  return WriteId::Make(OctetsOf(entry, "store"), OctetsOf(entry, "key"), std::move(version));
}

WriteId GoodEntryOf(const Json& entry) {
  Result<WriteId> id = EntryOf(entry);
  EXPECT_TRUE(id.ok()) << entry.dump();
  return *std::move(id);
}

Result<Lineage> LineageOf(const Json& lineage) {
  std::vector<WriteId> ids;
  for (const Json& entry : lineage.at("entries")) {
    Result<WriteId> id = EntryOf(entry);
    if (!id) return id.error();
    ids.push_back(*std::move(id));
  }
  Lineage made(ids);
  if (lineage.at("anywhere")) made = made.MarkedIncomplete();
  for (const Json& store : lineage.at("incomplete")) made = made.MarkedIncomplete({store.get<std::string>()});
  for (const Json& extension : lineage.at("extensions")) made |= Read("1~" + extension.get<std::string>());
  return made;
}

Lineage Read(std::string_view text) {
  Result<Lineage> lineage = Lineage::Deserialize(text);
  EXPECT_TRUE(lineage.ok()) << text << ": " << (lineage.ok() ? "" : lineage.error().message);
  return lineage.value_or(Lineage());
}

std::string CanonicalWhole(const Lineage& lineage) {
  std::vector<std::string> texts;
  for (const std::string_view section : LineageAccess::Sections(lineage)) {
    texts.push_back(Section::Open(section).Text());
  }
  std::sort(texts.begin(), texts.end());
  std::string text = "1";
  for (const std::string& each : texts) text += "~" + each;
  const Lineage bare(LineageAccess::Make({}, {}, lineage.extensions()));
  const std::vector<std::string> incomplete = lineage.incomplete();
  if (incomplete.empty()) return text + bare.Serialize().substr(1);
  const bool anywhere = incomplete.front().empty();
  return text + bare.MarkedIncomplete(anywhere ? std::vector<std::string>() : incomplete).Serialize().substr(1);
}

std::string Canonical(const Lineage& lineage) {
  Lineage opened(lineage.ids());
  for (const std::string& extension : lineage.extensions()) opened |= Read("1~" + extension);
  const std::vector<std::string> incomplete = lineage.incomplete();
  if (!incomplete.empty()) {
    opened = opened.MarkedIncomplete(incomplete.front().empty() ? std::vector<std::string>() : incomplete);
  }
  return opened.Serialize();
}

std::string Canonical(std::string_view text) { return Canonical(Read(text)); }

}  // namespace antipode::testing
