// Envelopes: no value is lost, and what was closed is opened.
#include "antipode/shim/envelope.h"
#include "expect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view octets = TextOf(data, size);
  const antipode::OpenedEnvelope opened = antipode::OpenEnvelope(octets);
  if (!opened.text) EXPECT(opened.value == octets);
  const auto closed = antipode::CloseEnvelope(octets, "1~s..e.1");
  EXPECT(closed.ok());
  EXPECT(antipode::OpenEnvelope(*closed).value == octets);
  EXPECT(antipode::OpenEnvelope(*closed).text == "1~s..e.1");
  const auto bare = antipode::CloseEnvelope(octets, "");
  EXPECT(bare.ok() && antipode::OpenEnvelope(*bare).value == octets);
  return 0;
}
