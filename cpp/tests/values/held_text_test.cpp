// Lineages round the sizes at which their text and their sections' places need memory of their own (lineage_rep.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "antipode/lineage.h"
#include "model/section_places.h"
#include "vectors.h"

namespace antipode::testing {
namespace {

constexpr std::size_t kMostStores = 12;  // the places of 8 sections stand within
constexpr std::size_t kLongestEpoch = 32;

WriteId At(std::size_t store, const std::string& epoch, std::uint64_t counter) {
  return *WriteId::Position("store-" + std::to_string(10 + store), epoch, counter);
}

// The text by the grammar, without the library.
std::string Spelled(std::size_t stores, const std::string& epoch, std::size_t raised, std::uint64_t counter) {
  std::string text = "1";
  for (std::size_t i = 0; i < stores; ++i) {
    text += "~store-" + std::to_string(10 + i) + ".." + epoch + "." + std::to_string(i == raised ? counter : 99);
  }
  return text;
}

// Lineages of 1 to 12 stores and 16 to 560 octets: read, raised in each section to a counter of the same length and to
// a longer one, and written; what it was raised from stays as it was.
TEST(HeldText, IsRaisedInPlaceWhateverItsSize) {
  std::vector<std::size_t> sizes;
  for (std::size_t stores = 1; stores <= kMostStores; ++stores) {
    for (std::size_t length = 1; length <= kLongestEpoch; ++length) {
      const std::string epoch(length, 'e');
      const std::string text = Spelled(stores, epoch, stores, 0);
      const Lineage lineage = Read(text);
      ASSERT_EQ(lineage.Serialize(), text);
      ASSERT_EQ(lineage.size(), stores);
      sizes.push_back(text.size());
      for (std::size_t raised = 0; raised < stores; ++raised) {
        for (const std::uint64_t counter : {100U, 1234567U}) {
          const Lineage higher = lineage.Including(At(raised, epoch, counter));
          const std::string wanted = Spelled(stores, epoch, raised, counter);
          ASSERT_EQ(higher.Serialize(), wanted);
          sizes.push_back(wanted.size());
          const Lineage same_length = higher.Including(At(raised, epoch, counter + 1));
          ASSERT_EQ(same_length.Serialize(), Spelled(stores, epoch, raised, counter + 1));
          ASSERT_EQ(same_length.Including(At(stores - 1, epoch, 999999)).Including(At(0, epoch, 999998)).size(),
                    stores);
          ASSERT_EQ(higher.Serialize(), wanted);
          ASSERT_EQ(*higher.OnlyPosition("store-" + std::to_string(10 + raised), epoch), counter);
          ASSERT_EQ(lineage | higher, higher);
        }
      }
      ASSERT_EQ(lineage.Serialize(), text);
    }
  }
  for (const std::size_t octets : {255U, 256U, 257U}) EXPECT_THAT(sizes, ::testing::Contains(octets));
}

// Sections out of order are sorted, however many; a store that stands twice is refused.
TEST(HeldText, IsReadInAnyOrder_WIRE_22_WIRE_23) {
  for (std::size_t stores = 2; stores <= kMostStores; ++stores) {
    const std::string text = Spelled(stores, "e", stores, 0);
    std::string backward = "1";
    for (std::size_t i = stores; i-- > 0;) backward += "~store-" + std::to_string(10 + i) + "..e.99";
    EXPECT_EQ(Read(backward).Serialize(), text);
    EXPECT_FALSE(Lineage::Deserialize(text + "~store-10..e.7").ok());
    EXPECT_FALSE(Lineage::Deserialize(text + "~store-" + std::to_string(9 + stores) + "..f.7").ok());
  }
}

// What places were moved from has none, however many it had.
TEST(HeldText, PlacesThatWereMovedAreGone) {
  for (std::uint32_t count = 1; count <= kMostStores; ++count) {
    SectionPlaces places;
    for (std::uint32_t i = 0; i < count; ++i) places.push_back({i, 1, 1});
    SectionPlaces taken = std::move(places);
    EXPECT_EQ(taken.size(), count);
    EXPECT_EQ(taken[count - 1].begin, count - 1);
    EXPECT_TRUE(places.empty());  // NOLINT(bugprone-use-after-move): this is what is tested
    EXPECT_EQ(places.begin(), places.end());
    places.push_back({7, 1, 1});
    EXPECT_EQ(places[0].begin, 7U);
    places = std::move(taken);
    EXPECT_EQ(places.size(), count);
    EXPECT_TRUE(taken.empty());  // NOLINT(bugprone-use-after-move)
  }
}

}  // namespace
}  // namespace antipode::testing
