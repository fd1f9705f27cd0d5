// The vectors of the wire form that every language runs.
#include <gtest/gtest.h>

#include <algorithm>

#include "antipode/wire.h"
#include "model/parse.h"
#include "propagation/exchange.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

void ExpectMeans(const Lineage& lineage, const Json& meant) {
  std::vector<std::string> found;
  for (const WriteId& id : lineage.ids()) found.push_back(id.Section());
  std::vector<std::string> wanted;
  for (const Json& entry : meant.at("entries")) wanted.push_back(GoodEntryOf(entry).Section());
  std::sort(found.begin(), found.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(found, wanted);
  std::vector<std::string> incomplete;
  if (meant.at("anywhere")) incomplete.emplace_back();
  for (const Json& store : meant.at("incomplete")) incomplete.push_back(store.get<std::string>());
  std::vector<std::string> flag = lineage.incomplete();
  std::sort(flag.begin(), flag.end());
  std::sort(incomplete.begin(), incomplete.end());
  EXPECT_EQ(flag, incomplete);
  std::vector<std::string> extensions = meant.at("extensions");
  std::sort(extensions.begin(), extensions.end());
  EXPECT_EQ(lineage.extensions(), extensions);
}

TEST(WireVectors, Decode) {
  RunVectors("wire-decode", [](const Json& vector) {
    const auto text = vector.at("text").get<std::string>();
    ASSERT_TRUE(Parse(text).ok()) << Parse(text).error().message;
    const Lineage lineage = Read(text);
    ExpectMeans(lineage, vector.at("lineage"));
    EXPECT_EQ(Canonical(lineage), vector.at("canonical"));
    if (vector.at("is_canonical")) {
      EXPECT_EQ(lineage.Serialize(), text);
    }
  });
}

TEST(WireVectors, Refuse) {
  RunVectors("wire-refuse", [](const Json& vector) {
    const auto text = vector.at("text").get<std::string>();
    EXPECT_FALSE(Parse(text).ok());
    const Result<Lineage> read = Lineage::Deserialize(text);
    if (vector.at("reader").is_null()) {
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error().code, ErrorCode::kMalformedLineage);
    } else {
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(Canonical(*read), vector.at("reader"));
    }
  });
}

TEST(WireVectors, Encode) {
  RunVectors("wire-encode", [](const Json& vector) {
    const Result<Lineage> lineage = LineageOf(vector.at("lineage"));
    if (vector.contains("error")) {
      ASSERT_FALSE(lineage.ok());
      EXPECT_EQ(lineage.error().code, ErrorCode::kConfiguration);
    } else {
      ASSERT_TRUE(lineage.ok()) << lineage.error().message;
      EXPECT_EQ(lineage->Serialize(), vector.at("text"));
    }
  });
}

TEST(WireVectors, Escape) {
  RunVectors("wire-escape", [](const Json& vector) {
    const std::string octets = FromHex(vector.at("octets_hex").get<std::string>());
    const auto spelled = vector.at("spelled").get<std::string>();
    EXPECT_EQ(wire::Spell(octets), spelled);
    EXPECT_EQ(wire::Unspell(spelled), octets);
    EXPECT_TRUE(wire::IsSpelled(spelled));
  });
}

TEST(WireVectors, Limits) {
  RunVectors("wire-limits", [](const Json& vector) {
    const auto text = vector.at("text").get<std::string>();
    EXPECT_EQ(text.size(), vector.at("bytes").get<std::size_t>());
    ASSERT_EQ(Parse(text).ok(), vector.at("accept").get<bool>());
    if (vector.at("accept")) {
      EXPECT_EQ(Read(text).size(), vector.at("entries").get<std::size_t>());
    }
  });
}

TEST(WireVectors, HashedKey) {
  RunVectors("wire-hashed-key", [](const Json& vector) {
    std::string key = FromHex(vector.at("key_hex").get<std::string>());
    if (vector.at("hash_keys") && !key.empty()) key = wire::HashedKey(key);
    EXPECT_EQ(wire::SpellKey(key), vector.at("spelled"));
  });
}

TEST(WireVectors, Hop) {
  RunVectors("wire-hop", [](const Json& vector) {
    Lineage one_by_one = Read(vector.at("text").get<std::string>());
    std::vector<WriteId> ids;
    for (const Json& entry : vector.at("append")) {
      ids.push_back(GoodEntryOf(entry));
      one_by_one = one_by_one.Including(ids.back());
    }
    const Lineage at_once = Read(vector.at("text").get<std::string>()).Including(ids);
    EXPECT_EQ(one_by_one.Serialize(), vector.at("result"));
    EXPECT_EQ(at_once.Serialize(), vector.at("result"));
  });
}

TEST(WireVectors, Budget) {
  RunVectors("wire-budget", [](const Json& vector) {
    const Lineage lineage = Read(vector.at("text").get<std::string>());
    const auto changed = vector.value("changed", std::vector<std::string>());
    const Lineage fitted = lineage.Fit(vector.at("budget").get<std::size_t>(), changed);
    EXPECT_EQ(fitted.Serialize(), vector.at("result"));
    std::vector<std::string> left_out;
    const std::vector<std::string> kept = fitted.stores();
    for (const std::string& store : lineage.stores()) {
      if (std::find(kept.begin(), kept.end(), store) == kept.end()) left_out.push_back(store);
    }
    std::vector<std::string> wanted = vector.at("left_out");
    std::sort(left_out.begin(), left_out.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(left_out, wanted);
  });
}

TEST(WireVectors, SerializeLimits) {
  RunVectors("wire-serialize-limits", [](const Json& vector) {
    const Result<Lineage> lineage = LineageOf(vector.at("lineage"));
    ASSERT_TRUE(lineage.ok());
    EXPECT_EQ(lineage->Serialize(), vector.at("text"));
    EXPECT_TRUE(Parse(lineage->Serialize()).ok());
  });
}

TEST(WireVectors, Header) {
  RunVectors("wire-header", [](const Json& vector) {
    const std::vector<std::string> values = vector.at("values");
    const ReceivedLineage taken = Take(wire::UnwrapHeader({values.begin(), values.end()}),
                             [](std::string_view text) {
                               return JudgeRequestText({true, {}, Reason::kNone, {}, {}}, text, TrustSettings(), 0);
                             },
                             Direction::kRequestIn, {});
    EXPECT_EQ(taken.malformed, vector.at("malformed").get<int>());
    Lineage whole = taken.lineage;  // a recorded history has taken its messages' names out
    for (const std::string& message : taken.messages) whole |= Read("1~_.msg." + message);
    if (vector.at("text").is_null()) {
      EXPECT_TRUE(values.empty() && whole.empty());
    } else {
      EXPECT_EQ(CanonicalWhole(whole), vector.at("text"));
    }
  });
}

}  // namespace
}  // namespace antipode::testing
