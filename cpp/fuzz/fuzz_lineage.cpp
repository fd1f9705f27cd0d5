// The strict reader and the algebra: what is accepted means one lineage, and is written so that it is read again.
#include "antipode/lineage.h"
#include "antipode/wire.h"
#include "expect.h"
#include "model/parse.h"

using antipode::Lineage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Two texts, so that joining is tried: they stand before and behind the first line feed.
  const std::string_view input = TextOf(data, size);
  const std::size_t cut = input.find('\n');
  const auto a = Lineage::Deserialize(input.substr(0, cut));
  const auto b = Lineage::Deserialize(cut == std::string_view::npos ? "1" : input.substr(cut + 1));
  if (!a) {
    EXPECT(a.error().code == antipode::ErrorCode::kMalformedLineage);
    return 0;
  }
  const std::string text = a->Serialize();
  EXPECT(antipode::Parse(text).ok());
  EXPECT(Lineage::Deserialize(text)->Serialize() == text);
  EXPECT(*Lineage::Deserialize(text) == *a);
  EXPECT(Lineage(a->ids()) == *a);
  EXPECT(a->Fit(200).Serialize().size() <= 200);
  if (!b) return 0;
  EXPECT((*a | *b) == (*b | *a));
  EXPECT(*a <= (*a | *b));
  EXPECT((*a | *b).Without(*b) <= *a);
  EXPECT(((*a | *b).AddedTo(*a) | *a) == (*a | *b));
  return 0;
}
