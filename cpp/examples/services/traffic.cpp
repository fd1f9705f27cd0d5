#include "traffic.h"

#include <nlohmann/json.hpp>

namespace services {
namespace {

constexpr std::size_t kAround = 4;  // ": " and the end of the line

std::size_t MembersOfLineage(std::string_view baggage) {
  std::size_t octets = 0;
  while (!baggage.empty()) {
    const std::string_view member = baggage.substr(0, baggage.find(','));
    baggage.remove_prefix(std::min(member.size() + 1, baggage.size()));
    const std::size_t start = member.find_first_not_of(" \t");
    if (start != std::string_view::npos && member.substr(start, 9) == "antipode=") octets += member.size() + 1;
  }
  return octets;
}

}  // namespace

Octets Measure(const antipode::Carrier& headers) {
  std::size_t all = 0;
  std::size_t lineage = 0;
  headers.ForEach([&](std::string_view name, std::string_view value) {
    const std::size_t line = name.size() + value.size() + kAround;
    all += line;
    if (antipode::IsSameHeader(name, antipode::kLineageHeader) ||
        antipode::IsSameHeader(name, antipode::kJaegerHeader)) {
      lineage += line;
    } else if (antipode::IsSameHeader(name, antipode::kBaggageHeader)) {
      lineage += MembersOfLineage(value);
    }
  });
  return {static_cast<std::int64_t>(all), static_cast<std::int64_t>(lineage)};
}

void Traffic::CountRequest(const Octets& headers) {
  ++requests_;
  request_headers_ += headers.all;
  request_lineage_ += headers.lineage;
}

void Traffic::CountResponse(const Octets& headers) {
  response_headers_ += headers.all;
  response_lineage_ += headers.lineage;
}

std::string Traffic::ToJson() const {
  return nlohmann::json{{"requests", requests_.load()},
                        {"request_headers", request_headers_.load()},
                        {"request_lineage", request_lineage_.load()},
                        {"response_headers", response_headers_.load()},
                        {"response_lineage", response_lineage_.load()}}
      .dump();
}

}  // namespace services
