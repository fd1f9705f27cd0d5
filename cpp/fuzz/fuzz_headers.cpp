// Headers from outside: whatever they hold, a request's scope opens, and what leaves again can be read.
#include <string>
#include <utility>
#include <vector>

#include "antipode/antipode.h"
#include "expect.h"
#include "propagation/carriers.h"
#include "trust/addresses.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = [] {
    antipode::SetLogSink([](antipode::LogLevel, std::string_view) {});
    return true;
  }();
  EXPECT(quiet);
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view input = TextOf(data, size);
  // Lines of which the first octet says the name.
  const char* const names[] = {"baggage",   "antipode-lineage", "uberctx-antipode",
                               "forwarded", "x-forwarded-for",  "uber-trace-id"};
  while (!input.empty()) {
    const std::string_view line = input.substr(0, input.find('\n'));
    input.remove_prefix(std::min(line.size() + 1, input.size()));
    if (!line.empty()) headers.emplace_back(names[static_cast<unsigned char>(line[0]) % 6], line.substr(1));
  }
  static_cast<void>(antipode::PublicAddressIn(headers));
  static_cast<void>(antipode::IsPrivatePeer(TextOf(data, size)));
  antipode::HeaderCarrier carrier(headers);
  const antipode::Scope scope = antipode::ExtractRequest(carrier, "127.0.0.1");
  EXPECT(!antipode::InjectRequest(carrier, "inside"));
  const antipode::Lineage left = scope.lineage();
  std::vector<std::pair<std::string, std::string>> sent;
  for (const auto& [name, value] : headers) {
    if (name != "forwarded" && name != "x-forwarded-for") sent.emplace_back(name, value);
  }
  const antipode::Scope next = antipode::ExtractRequest(antipode::HeaderCarrier(sent), "127.0.0.1");
  if (!left.empty()) EXPECT(next.lineage() == left.Fit(1024));
  return 0;
}
