// Seals: no text but a sealed one is valid, and what is stripped is the text or is refused.
#include "antipode/keys.h"
#include "expect.h"
#include "trust/seal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const antipode::Keys keys = *antipode::Keys::Make({{"k", std::string(16, 'k')}});
  const std::string_view text = TextOf(data, size);
  EXPECT(antipode::OpenSeal(text, keys, antipode::Purpose::kRequest, 0).state != antipode::SealState::kValid);
  const std::string_view stripped = antipode::StripSeal(text);
  EXPECT(text.substr(0, stripped.size()) == stripped);
  const std::string sealed = antipode::Seal(text, keys, antipode::Purpose::kRequest, 1000);
  EXPECT(antipode::OpenSeal(sealed, keys, antipode::Purpose::kRequest, 999).state == antipode::SealState::kValid);
  EXPECT(antipode::OpenSeal(sealed, keys, antipode::Purpose::kRequest, 999).text == stripped);
  static_cast<void>(antipode::Keys::ParseFile(text, "fuzz"));
  return 0;
}
