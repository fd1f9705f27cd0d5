// What of a read that dry-run repeats is compared (spec REC-22, REC-23).
#include "repeating.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "session.h"

namespace antipode::postgresql {
namespace {

using Given = std::vector<std::vector<Value>>;

OwnResult ResultOf(const Given& rows) {
  OwnResult result(PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK));
  std::vector<PGresAttDesc> columns(rows.empty() ? 0 : rows.front().size());
  std::string name = "column";
  for (PGresAttDesc& column : columns) column.name = name.data();
  PQsetResultAttrs(result.get(), static_cast<int>(columns.size()), columns.data());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < rows[row].size(); ++column) {
      Value value = rows[row][column];
      const int length = value ? static_cast<int>(value->size()) : -1;
      PQsetvalue(result.get(), static_cast<int>(row), static_cast<int>(column), value ? value->data() : nullptr,
                 length);
    }
  }
  return result;
}

std::optional<std::string> OctetsOf(const std::vector<Given>& results) {
  RowOctets octets;
  for (const Given& each : results) {
    if (!octets.Add(ResultOf(each).get())) return std::nullopt;
  }
  return octets.Octets();
}

// REC-23: as a multiset, in results of one row or of many.
TEST(RowOctets, AreTheSameInWhateverOrder) {
  const auto octets = OctetsOf({{{"a", "b"}, {"c", "d"}, {"a", "b"}}});
  EXPECT_EQ(OctetsOf({{{"c", "d"}, {"a", "b"}, {"a", "b"}}}), octets);
  EXPECT_EQ(OctetsOf({{{"a", "b"}}, {{"a", "b"}}, {{"c", "d"}}, {}}), octets);
}

TEST(RowOctets, AreOthersOfOtherRows) {
  const std::vector<Given> all = {{},
                                  {{""}},
                                  {{std::nullopt}},
                                  {{"a"}},
                                  {{"a"}, {"a"}},
                                  {{"a", "b"}},
                                  {{"ab", ""}},
                                  {{"", "ab"}},
                                  {{"a"}, {"b"}},
                                  {{"a(1:b"}},
                                  {{"-"}},
                                  {{"1:a"}},
                                  {{std::nullopt, "a"}},
                                  {{"a", std::nullopt}}};
  for (std::size_t one = 0; one < all.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      EXPECT_NE(OctetsOf({all[one]}), OctetsOf({all[other]})) << one << ' ' << other;
    }
  }
}

// REC-14: of many rows, as of one long one, no more than that is kept.
TEST(RowOctets, EndWhereTheyAreTooMany) {
  EXPECT_FALSE(OctetsOf({{{std::string(FollowedRead::kMostOctets + 1, 'x')}}}));
  EXPECT_TRUE(OctetsOf({{{std::string(FollowedRead::kMostOctets - 100, 'x')}}}));
  RowOctets octets;
  const OwnResult row = ResultOf({{std::string(1000, 'x')}});
  std::size_t rows = 0;
  while (rows < 10'000 && octets.Add(row.get())) ++rows;
  EXPECT_LE(rows * 1000, FollowedRead::kMostOctets);
}

}  // namespace
}  // namespace antipode::postgresql
