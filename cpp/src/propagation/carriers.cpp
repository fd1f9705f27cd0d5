#include "propagation/carriers.h"

#include <algorithm>
#include <atomic>

#include "antipode/wire.h"
#include "model/text.h"

namespace antipode {
namespace {

constexpr std::string_view kBlank = " \t";

std::atomic<bool> baggage_format{true};
std::atomic<bool> jaeger_format{false};

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// A key as a library of baggage decodes it.
std::string DecodedKey(std::string_view key) {
  std::string decoded;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '%' && i + 2 < key.size() && HexDigit(key[i + 1]) >= 0 && HexDigit(key[i + 2]) >= 0) {
      decoded += static_cast<char>(HexDigit(key[i + 1]) * 16 + HexDigit(key[i + 2]));
      i += 2;
    } else {
      decoded += key[i] == '+' ? ' ' : key[i];
    }
  }
  return decoded;
}

// Whether a baggage member is the lineage, also where its key is spelled so that a library decodes it.
bool IsOurs(std::string_view member) {
  const std::size_t equals = member.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = Trim(member.substr(0, equals), kBlank);
  if (key == kBaggageKey) return true;
  return key.find('%') != std::string_view::npos && Trim(DecodedKey(key), wire::kWhiteSpace) == kBaggageKey;
}

bool MayHoldOurs(std::string_view baggage) {
  return baggage.find(kBaggageKey) != std::string_view::npos || baggage.find('%') != std::string_view::npos;
}

// What one kind of carrier brought: all its lines, or all members of our key.
struct Found {
  std::vector<std::string_view> values;

  void AddTo(std::vector<std::string>& texts) const {
    if (values.empty()) return;
    for (std::string& text : wire::UnwrapHeader(values)) texts.push_back(std::move(text));
  }
};

std::optional<std::string> JoinedValues(const Carrier& headers, std::string_view name) {
  const std::vector<std::string> values = ValuesOf(headers, name);
  if (values.empty()) return std::nullopt;
  return Joined(values, ",");
}

}  // namespace

bool IsSameHeader(std::string_view a, std::string_view b) { return EqualsIgnoringCase(a, b); }

void SetPropagationFormats(Formats formats) {
  baggage_format = formats.baggage;
  jaeger_format = formats.jaeger;
}

Formats DeclaredFormats() { return {baggage_format, jaeger_format}; }

InboundHeaders ReadCarrier(const Carrier& headers) {
  InboundHeaders arrived;
  std::vector<std::string> lines;  // what is kept of the lines: views of a visit do not live on
  std::vector<std::pair<std::size_t, std::size_t>> places;
  enum : std::size_t { kBaggage, kOwn, kJaeger, kKinds };
  headers.ForEach([&](std::string_view name, std::string_view value) {
    const auto keep = [&](std::size_t kind, std::string_view text) {
      places.emplace_back(kind, lines.size());
      lines.emplace_back(text);
    };
    if (IsSameHeader(name, kBaggageHeader)) {
      if (!MayHoldOurs(value)) return;
      ForEachPart(value, ',', [&](std::string_view member) {
        if (IsOurs(member)) keep(kBaggage, member.substr(member.find('=') + 1));
      });
    } else if (IsSameHeader(name, kLineageHeader)) {
      keep(kOwn, value);
    } else if (IsSameHeader(name, kJaegerHeader)) {
      keep(kJaeger, value);
    } else if (IsSameHeader(name, "x-forwarded-for") || IsSameHeader(name, "forwarded")) {
      arrived.forwarded.emplace_back(Lower(name), value);
    }
  });
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Found found;
    for (const auto& [of, place] : places) {
      if (of == kind) found.values.push_back(lines[place]);
    }
    found.AddTo(arrived.texts);
  }
  return arrived;
}

std::string WithoutMember(std::string_view baggage) {
  if (!MayHoldOurs(baggage)) return std::string(baggage);
  std::vector<std::string> kept;
  bool ours = false;
  ForEachPart(baggage, ',', [&](std::string_view member) {
    if (IsOurs(member)) {
      ours = true;
    } else {
      kept.emplace_back(member);
    }
  });
  return ours ? std::string(Trim(Joined(kept, ","), kBlank)) : std::string(baggage);
}

std::optional<std::string> WithMember(std::string_view baggage, std::string_view text) {
  std::string line = WithoutMember(baggage);
  std::size_t members = 0;
  for (const std::string_view member : SplitAt(line, ',')) members += Trim(member, wire::kWhiteSpace).empty() ? 0 : 1;
  if (members == 0) {
    line.clear();
  } else {
    line += ',';
  }
  line.append(kBaggageKey).append("=").append(text);
  if (members + 1 > kMaxBaggageMembers || line.size() > kMaxBaggageBytes) return std::nullopt;
  return line;
}

void Rewrite(Carrier& headers, const std::optional<std::string>& text, Formats formats) {
  bool own = text.has_value();
  const std::optional<std::string> baggage = JoinedValues(headers, kBaggageHeader);
  std::optional<std::string> line;
  if (text && formats.baggage && headers.ShowsAll()) line = WithMember(baggage.value_or(std::string()), *text);
  if (line) {
    headers.Set(kBaggageHeader, *line);
    own = false;
  } else if (baggage) {
    const std::string rest = WithoutMember(*baggage);
    if (rest.empty()) {
      headers.Remove(kBaggageHeader);
    } else if (rest != *baggage) {
      headers.Set(kBaggageHeader, rest);
    }
  }
  if (text && (formats.jaeger || !ValuesOf(headers, kJaegerTrace).empty())) {
    headers.Set(kJaegerHeader, *text);
    own = own && formats.baggage;
  } else if (!ValuesOf(headers, kJaegerHeader).empty()) {
    headers.Remove(kJaegerHeader);
  }
  if (own) {
    headers.Set(kLineageHeader, *text);
  } else if (!ValuesOf(headers, kLineageHeader).empty()) {
    headers.Remove(kLineageHeader);
  }
}

std::vector<std::string> ValuesOf(const Carrier& headers, std::string_view name) {
  std::vector<std::string> values;
  headers.ForEach([&](std::string_view each, std::string_view value) {
    if (IsSameHeader(each, name)) values.emplace_back(value);
  });
  return values;
}

}  // namespace antipode
