/// \file
/// OpenTelemetry, where its API headers are there: its RuntimeContext holds our scope, and a propagator goes round the
/// application's own (PROP-8, TRUST-25). Nothing of it is compiled into the library: include this where it is used.
#ifndef ANTIPODE_OPENTELEMETRY_H_
#define ANTIPODE_OPENTELEMETRY_H_

#include <opentelemetry/baggage/baggage.h>
#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/context.h>
#include <opentelemetry/context/propagation/global_propagator.h>
#include <opentelemetry/context/propagation/text_map_propagator.h>
#include <opentelemetry/context/runtime_context.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/carrier.h"
#include "antipode/hooks.h"
#include "antipode/logs.h"
#include "antipode/propagation.h"
#include "antipode/scope.h"
#include "antipode/settings.h"

namespace antipode::otel {

namespace api = opentelemetry;

namespace detail {

inline constexpr const char* kScopeKey = "antipode-scope";

// A Context holds a few types only; one of them is shared, so the scope goes along in it. Nobody else reads this key.
class ScopeHolder : public api::baggage::Baggage {
 public:
  explicit ScopeHolder(ScopePtr held) : scope(std::move(held)) {}
  const ScopePtr scope;
};

inline std::string_view View(api::nostd::string_view text) { return {text.data(), text.size()}; }
inline api::nostd::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace detail

/// A Context that holds this scope; with null, one that holds none.
inline api::context::Context WithScope(api::context::Context context, ScopePtr scope) {
  std::shared_ptr<api::baggage::Baggage> holder = std::make_shared<detail::ScopeHolder>(std::move(scope));
  return context.SetValue(detail::kScopeKey, api::nostd::shared_ptr<api::baggage::Baggage>(std::move(holder)));
}

/// The scope that a Context holds; nothing where it says nothing of any.
inline std::optional<ScopePtr> ScopeIn(const api::context::Context& context) {
  using Shared = api::nostd::shared_ptr<api::baggage::Baggage>;
  const api::context::ContextValue value = context.GetValue(detail::kScopeKey);
  if (!api::nostd::holds_alternative<Shared>(value)) return std::nullopt;
  return static_cast<const detail::ScopeHolder*>(api::nostd::get<Shared>(value).get())->scope;
}

/// Lets OpenTelemetry's RuntimeContext hold the current scope: what takes its Context along takes the scope along
/// (SCOPE-11).
inline void FollowRuntimeContext() {
  using Token = api::context::Token;
  ContextHooks hooks;
  hooks.entered = [](const ScopePtr& scope) -> std::uint64_t {
    auto token = api::context::RuntimeContext::Attach(WithScope(api::context::RuntimeContext::GetCurrent(), scope));
    return reinterpret_cast<std::uintptr_t>(token.release());
  };
  hooks.left = [](std::uint64_t token) {
    const api::nostd::unique_ptr<Token> attached(reinterpret_cast<Token*>(static_cast<std::uintptr_t>(token)));
  };
  hooks.current = [] { return ScopeIn(api::context::RuntimeContext::GetCurrent()); };
  SetContextHooks(hooks);
}

/// OpenTelemetry's carriers of text maps: they are asked by name, and can take nothing out. What a vendor's header
/// tells caches (PROP-34) is seen where the carrier lists its keys.
class TextMapCarrier : public Carrier {
 public:
  explicit TextMapCarrier(const api::context::propagation::TextMapCarrier& from) : from_(from) {}
  explicit TextMapCarrier(api::context::propagation::TextMapCarrier& both) : from_(both), to_(&both) {}

  void ForEach(const Visitor& visit) const override {
    constexpr std::array<std::string_view, 7> kOthers = {kBaggageHeader, kLineageHeader, kJmsProperty,  kJaegerHeader,
                                                         kJaegerTrace,   "forwarded",    "x-forwarded-for"};
    constexpr std::array<std::string_view, 7> kOfCaches = {"cache-control",    "cdn-cache-control", "surrogate-control",
                                                           "expires",          "last-modified",     "x-accel-expires",
                                                           "content-location"};
    const auto get = [this](std::string_view name) { return detail::View(from_.Get(detail::View(name))); };
    std::vector<std::string> listed;  // as it is spelled there: a carrier may tell spellings apart
    std::set<std::pair<std::string, std::string>> seen;
    from_.Keys([&](api::nostd::string_view key) {
      std::string name(detail::View(key));
      std::string lower = name;
      for (char& each : lower) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
      const bool is_read = TellsCaches(name) || std::find(kOthers.begin(), kOthers.end(), lower) != kOthers.end();
      if (is_read && seen.emplace(lower, std::string(get(name))).second) listed.push_back(std::move(name));
      return true;
    });
    const auto visit_unlisted = [&](std::string_view name) {
      const auto is_same = [name](const std::string& each) { return IsSameHeader(each, name); };
      if (std::none_of(listed.begin(), listed.end(), is_same) && !get(name).empty()) visit(name, get(name));
    };
    for (const std::string& name : listed) visit(name, get(name));
    std::for_each(kOthers.begin(), kOthers.end(), visit_unlisted);
    std::for_each(kOfCaches.begin(), kOfCaches.end(), visit_unlisted);
  }

  void Set(std::string_view name, std::string_view value) override {
    if (to_ != nullptr) to_->Set(detail::View(name), detail::View(value));
  }

  /// Writes what means nothing in its place: the empty lineage, or no baggage.
  void Remove(std::string_view name) override {
    if (!from_.Get(detail::View(name)).empty()) Set(name, IsSameHeader(name, kBaggageHeader) ? "" : "1");
  }

 private:
  const api::context::propagation::TextMapCarrier& from_;
  api::context::propagation::TextMapCarrier* const to_ = nullptr;
};

namespace detail {

// A client hook's word on this very call.
struct Approved {
  std::optional<std::string> text;
};

inline const Approved*& CurrentApproval() {
  thread_local const Approved* current = nullptr;
  return current;
}

}  // namespace detail

/// Says that the calls of this thread go to `host` until it ends, for instrumentations that call a propagator.
///
/// Whether a lineage goes along is judged here, and its text is made here, once (TRUST-15, TRUST-25).
class [[nodiscard]] Approval {
 public:
  explicit Approval(std::string_view host, Site site = Site()) : outer_(detail::CurrentApproval()) {
    Result<std::optional<std::string>> text = TextForRequest(host, site);
    if (text) approved_.text = *std::move(text);
    detail::CurrentApproval() = &approved_;
  }
  Approval(const Approval&) = delete;
  Approval& operator=(const Approval&) = delete;
  ~Approval() { detail::CurrentApproval() = outer_; }

 private:
  detail::Approved approved_;
  const detail::Approved* const outer_;
};

/// Carries the lineage round the application's own propagator, in its formats.
class AntipodePropagator : public api::context::propagation::TextMapPropagator {
 public:
  using Inner = api::nostd::shared_ptr<api::context::propagation::TextMapPropagator>;

  explicit AntipodePropagator(Inner inner) : inner_(std::move(inner)) {
    inner_->Fields([this](api::nostd::string_view field) {
      formats_.baggage = formats_.baggage || detail::View(field) == kBaggageHeader;
      formats_.jaeger = formats_.jaeger || detail::View(field) == kJaegerTrace;
      return true;
    });
  }

  /// In which formats the application carries its own baggage.
  Formats formats() const { return formats_; }

  /// The Context with the lineage moved out of baggage (PROP-3). A scope that it holds stays; `ExtractRequest` opens
  /// one, because a propagator knows no peer to judge.
  api::context::Context Extract(const api::context::propagation::TextMapCarrier& carrier,
                                api::context::Context& context) noexcept override {
    const std::optional<ScopePtr> running = ScopeIn(context);
    api::context::Context extracted = WithoutOurs(inner_->Extract(carrier, context));
    // Some propagators begin with an empty Context: the scope of our middleware must not fall out of it.
    return running ? WithScope(extracted, *running) : extracted;
  }

  /// Writes the lineage where this very call was approved, or under `trust=all` (TRUST-25).
  void Inject(api::context::propagation::TextMapCarrier& carrier,
              const api::context::Context& context) noexcept override {
    std::optional<std::string> text = ApprovedText();
    if (text && CurrentScope() == nullptr && HasLineage(carrier)) text.reset();  // the application's own (SCOPE-31)
    const api::context::Context quiet = WithoutOurs(context);
    const auto baggage = api::baggage::GetBaggage(quiet);
    const bool fits = text && formats_.baggage && Fits(*baggage, *text);
    if (fits) {
      api::context::Context ours = quiet;
      inner_->Inject(carrier, api::baggage::SetBaggage(ours, WithOurs(*baggage, *text)));
    } else {
      inner_->Inject(carrier, quiet);
    }
    if (!text) return;
    if (formats_.jaeger) carrier.Set(detail::View(kJaegerHeader), *text);
    if (!fits && (formats_.baggage || !formats_.jaeger)) carrier.Set(detail::View(kLineageHeader), *text);
  }

  bool Fields(api::nostd::function_ref<bool(api::nostd::string_view)> callback) const noexcept override {
    return inner_->Fields(callback) && callback(detail::View(kLineageHeader));
  }

 private:
  static bool HasLineage(const api::context::propagation::TextMapCarrier& carrier) {
    const auto has = [&carrier](std::string_view name) { return !carrier.Get(detail::View(name)).empty(); };
    return has(kLineageHeader) || has(kJaegerHeader);
  }

  using Baggage = api::baggage::Baggage;
  using Members = std::vector<std::pair<std::string, std::string>>;

  static Members MembersOf(const Baggage& baggage) {
    Members members;
    baggage.GetAllEntries([&members](api::nostd::string_view key, api::nostd::string_view value) {
      members.emplace_back(detail::View(key), detail::View(value));
      return true;
    });
    return members;
  }

  static api::context::Context WithoutOurs(api::context::Context context) {
    std::string value;
    const auto baggage = api::baggage::GetBaggage(context);
    if (!baggage->GetValue(detail::View(kBaggageKey), value)) return context;
    return api::baggage::SetBaggage(context, baggage->Delete(detail::View(kBaggageKey)));
  }

  // As the last member, where OpenTelemetry's own `Set` puts a new one first.
  static api::nostd::shared_ptr<Baggage> WithOurs(const Baggage& baggage, const std::string& text) {
    Members members = MembersOf(baggage);
    members.emplace_back(kBaggageKey, text);
    return api::nostd::shared_ptr<Baggage>(new Baggage(members));
  }

  // Within 8,192 bytes and 64 members (PROP-9).
  static bool Fits(const Baggage& baggage, const std::string& text) {
    constexpr std::size_t kMostBytes = 8192;
    constexpr std::size_t kMostMembers = 64;
    const std::size_t length = baggage.ToHeader().size() + 1 + kBaggageKey.size() + 1 + text.size();
    return MembersOf(baggage).size() < kMostMembers && length <= kMostBytes;
  }

  static std::optional<std::string> ApprovedText() {
    if (const detail::Approved* approved = detail::CurrentApproval()) return approved->text;
    const auto settings = CurrentSettings();
    const ScopePtr scope = CurrentScope();
    if (settings->trust == Trust::kAll && !settings->edge) {
      return TextForRequest("localhost").value_or(std::optional<std::string>());
    }
    if (scope != nullptr && !scope->lineage().empty() && settings->trust != Trust::kNone) {
      logs::Warn(
          "AP404", "trust no approval",
          "did not send a lineage with a call of OpenTelemetry's own instrumentation: nothing says where it goes. "
          "Use antipode::InjectRequest, antipode::otel::Approval round the call, or set ANTIPODE_TRUST=all.",
          "dropped");
    }
    return std::nullopt;
  }

  const Inner inner_;
  Formats formats_{false, false};
};

/// Puts the propagator round OpenTelemetry's global one, tells ours the application's formats, and follows its context.
///
/// Call it once the application has set its own propagator, and again where it sets another.
inline void Instrument() {
  using Global = api::context::propagation::GlobalTextMapPropagator;
  const auto present = Global::GetGlobalPropagator();
  if (dynamic_cast<AntipodePropagator*>(present.get()) == nullptr) {
    auto* const round = new AntipodePropagator(present);
    SetPropagationFormats(round->formats());
    Global::SetGlobalPropagator(AntipodePropagator::Inner(round));
  }
  FollowRuntimeContext();
}

}  // namespace antipode::otel

#endif  // ANTIPODE_OPENTELEMETRY_H_
