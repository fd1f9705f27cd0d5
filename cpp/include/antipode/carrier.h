/// \file
/// Carriers: where headers, metadata or properties stand, whatever library they are of.
///
/// Each carrier refers to what it was made of and copies nothing: it must not outlive it. None of these headers needs
/// the library whose types it takes.
#ifndef ANTIPODE_CARRIER_H_
#define ANTIPODE_CARRIER_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// The lineage's own header: in responses, messages, metadata, and where baggage cannot carry it (PROP-2).
inline constexpr std::string_view kLineageHeader = "antipode-lineage";
/// The same in JMS, whose names are Java identifiers (PROP-18).
inline constexpr std::string_view kJmsProperty = "antipode_lineage";
/// W3C baggage, and the lineage's member in it (PROP-1).
inline constexpr std::string_view kBaggageHeader = "baggage";
inline constexpr std::string_view kBaggageKey = "antipode";
/// The baggage member in the format of Jaeger's clients (PROP-7), and how their trace goes.
inline constexpr std::string_view kJaegerHeader = "uberctx-antipode";
inline constexpr std::string_view kJaegerTrace = "uber-trace-id";

/// Whether two names of headers are the same: without regard to ASCII case.
bool IsSameHeader(std::string_view a, std::string_view b);

/// Whether a header of this name tells shared caches what they may keep (PROP-34): without regard to ASCII case.
bool TellsCaches(std::string_view name);

/// Lines of names and values, names in any case and maybe several times.
class Carrier {
 public:
  using Visitor = std::function<void(std::string_view name, std::string_view value)>;

  virtual ~Carrier() = default;

  /// Shows every line. One that can only look names up (OpenTelemetry's) shows those that hold lineages, forward,
  /// or tell caches what to keep.
  virtual void ForEach(const Visitor& visit) const = 0;
  /// Makes this the one line of that name.
  virtual void Set(std::string_view name, std::string_view value) = 0;
  /// Takes every line of that name out.
  virtual void Remove(std::string_view name) = 0;
  /// Whether what it shows is all that is sent: where not, the application's baggage is left alone.
  virtual bool ShowsAll() const { return true; }
};

namespace detail {
template <typename T, typename = void>
struct HasKeyType : std::false_type {};
template <typename T>
struct HasKeyType<T, std::void_t<typename T::key_type>> : std::true_type {};

template <typename T>
std::string_view View(const T& text) {
  return std::string_view(text.data(), text.size());
}
}  // namespace detail

/// Headers of HTTP in any container of pairs: maps, multimaps (cpp-httplib's), vectors. A const one can only be read.
template <typename Headers>
class HeaderCarrier : public Carrier {
 public:
  explicit HeaderCarrier(Headers& headers) : headers_(headers) {}

  void ForEach(const Visitor& visit) const override {
    for (const auto& [name, value] : headers_) visit(detail::View(name), detail::View(value));
  }

  void Set(std::string_view name, std::string_view value) override {
    if constexpr (!std::is_const_v<Headers>) {
      bool found = false;
      for (auto each = headers_.begin(); each != headers_.end();) {
        if (!IsSameHeader(detail::View(each->first), name)) {
          ++each;
        } else if (found) {
          each = headers_.erase(each);
        } else {
          each->second = std::string(value);
          found = true;
          ++each;
        }
      }
      if (found) return;
      if constexpr (detail::HasKeyType<Headers>::value) {
        headers_.emplace(std::string(name), std::string(value));
      } else {
        headers_.emplace_back(std::string(name), std::string(value));
      }
    }
  }

  void Remove(std::string_view name) override {
    if constexpr (!std::is_const_v<Headers>) {
      for (auto each = headers_.begin(); each != headers_.end();) {
        each = IsSameHeader(detail::View(each->first), name) ? headers_.erase(each) : std::next(each);
      }
    }
  }

 private:
  Headers& headers_;
};

template <typename Headers>
HeaderCarrier(Headers&) -> HeaderCarrier<Headers>;
template <typename Headers>
HeaderCarrier(const Headers&) -> HeaderCarrier<const Headers>;

/// The `map<string, string>` that services on Thrift hand along; a const one can only be read.
template <typename Map>
class ThriftCarrier : public HeaderCarrier<Map> {
  static_assert(std::is_same_v<std::remove_const_t<Map>, std::map<std::string, std::string>>,
                "Thrift's carrier is a std::map<std::string, std::string>");

 public:
  explicit ThriftCarrier(Map& map) : HeaderCarrier<Map>(map) {}
};

template <typename Map>
ThriftCarrier(Map&) -> ThriftCarrier<Map>;
template <typename Map>
ThriftCarrier(const Map&) -> ThriftCarrier<const Map>;

/// gRPC metadata that came in: `ServerContext::client_metadata()`, `ClientContext::GetServerTrailingMetadata()`.
template <typename Metadata>
class GrpcCarrier : public Carrier {
 public:
  explicit GrpcCarrier(const Metadata& metadata) : metadata_(metadata) {}

  void ForEach(const Visitor& visit) const override {
    for (const auto& [name, value] : metadata_) visit(detail::View(name), detail::View(value));
  }
  void Set(std::string_view, std::string_view) override {}
  void Remove(std::string_view) override {}

 private:
  const Metadata& metadata_;
};

template <typename Metadata>
GrpcCarrier(const Metadata&) -> GrpcCarrier<Metadata>;

namespace detail {
template <typename T, typename = void>
struct HasTrailingMetadata : std::false_type {};
template <typename T>
struct HasTrailingMetadata<
    T, std::void_t<decltype(std::declval<T&>().AddTrailingMetadata(std::string(), std::string()))>> : std::true_type {};
}  // namespace detail

/// gRPC metadata that goes out: a client's context (request metadata), a server's (trailing metadata, PROP-15).
///
/// gRPC shows nothing of what was added before, so the lineage goes into its own metadatum and no baggage is touched.
template <typename Context>
class GrpcWriter : public Carrier {
 public:
  explicit GrpcWriter(Context& context) : context_(context) {}

  void ForEach(const Visitor&) const override {}
  void Set(std::string_view name, std::string_view value) override {
    if constexpr (detail::HasTrailingMetadata<Context>::value) {
      context_.AddTrailingMetadata(std::string(name), std::string(value));
    } else {
      context_.AddMetadata(std::string(name), std::string(value));
    }
  }
  void Remove(std::string_view) override {}
  bool ShowsAll() const override { return false; }

 private:
  Context& context_;
};

template <typename Context>
GrpcWriter(Context&) -> GrpcWriter<Context>;

}  // namespace antipode

#endif  // ANTIPODE_CARRIER_H_
