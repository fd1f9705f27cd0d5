// Response streams, and what a scope knows of those that are open (PROP-28).
#include "antipode/response_stream.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "antipode/wire.h"
#include "propagation/carriers.h"
#include "propagation/exchange.h"
#include "scope/scope_impl.h"

namespace antipode {
namespace {

constexpr std::string_view kGivenUp = "nobody read it to its end";

}  // namespace

// Of the scope

void LineageScope::Impl::Streaming(const StreamPtr& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
}

void LineageScope::Impl::Streamed(const StreamPtr& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
}

bool LineageScope::Impl::streaming() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !streams_.empty();
}

// Of one call

std::string_view detail::MadeUpStatus(int code) {
  switch (code) {
    case 1:
      return "CANCELLED";
    case 2:
      return "UNKNOWN";  // the stream was removed
    case 4:
      return "DEADLINE_EXCEEDED";
    case 8:
      return "RESOURCE_EXHAUSTED";  // a message is longer than the client takes
    case 13:
      return "INTERNAL";  // a message cannot be read
    case 14:
      return "UNAVAILABLE";
    default:
      return {};
  }
}

struct ResponseStream::Call {
  explicit Call(std::string_view name) : scope(CurrentScope()), host(name) {
    if (!IsExpected(scope, host)) return;
    stream = std::make_shared<const Gap>(
        Gap{"streaming", "", "a response stream of " + host + " is open: its lineage comes at its end"});
  }

  // Whatever ends it does so once, and before the mark goes.
  template <typename Ending>
  void Finish(const Ending& ending) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (ended) return;
    ending();
    if (stream != nullptr) scope->impl().Streamed(stream);
    ended = true;
  }

  void Lost(std::string_view words) {
    Finish([&] {
      if (stream != nullptr) MarkUnanswered(*scope, host, words, std::nullopt);
    });
  }

  const ScopePtr scope;
  const std::string host;
  StreamPtr stream;  // null: nothing is expected
  std::mutex mutex;
  bool ended = false;
};

ResponseStream::ResponseStream(std::string_view host) : call_(std::make_unique<Call>(host)) {}

ResponseStream::ResponseStream(ResponseStream&& other) noexcept = default;

ResponseStream& ResponseStream::operator=(ResponseStream&& other) noexcept {
  if (this != &other) {
    Lost(kGivenUp);
    call_ = std::move(other.call_);
  }
  return *this;
}

ResponseStream::~ResponseStream() { Lost(kGivenUp); }

void ResponseStream::Message() {
  if (call_ == nullptr || call_->stream == nullptr) return;
  const std::lock_guard<std::mutex> lock(call_->mutex);
  if (!call_->ended) call_->scope->impl().Streaming(call_->stream);
}

void ResponseStream::End(const Carrier& trailers, Site site) {
  if (call_ == nullptr) return;
  const std::vector<std::string> values = ValuesOf(trailers, kLineageHeader);
  call_->Finish([&] {
    MergeResponse(call_->scope, values, call_->host, site);
    if (call_->stream != nullptr && !values.empty() && !IsExpected(call_->scope, call_->host)) {
      MarkUnanswered(*call_->scope, call_->host, "its trailer is not taken, by settings that came while it was open",
                     site);
    }
  });
}

void ResponseStream::Lost(std::string_view words) {
  if (call_ != nullptr) call_->Lost(words);
}

void ResponseStream::NotSent() {
  if (call_ != nullptr) call_->Finish([] {});
}

}  // namespace antipode
