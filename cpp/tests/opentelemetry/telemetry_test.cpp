// Barriers as OpenTelemetry's spans, by a tracer of the test's own (OBS-1, OBS-4, OBS-10, REC-9). The SDK is not
// needed.
#include "antipode/opentelemetry.h"  // both together, as an application has them
#include "antipode/opentelemetry_telemetry.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "antipode/barrier.h"
#include "antipode/memory.h"
#include "antipode/scope.h"
#include "environment.h"

namespace antipode::testing {
namespace {

namespace trace = opentelemetry::trace;
namespace nostd = opentelemetry::nostd;
namespace common = opentelemetry::common;

struct Seen {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<std::string> events;
  trace::SpanId parent;
  trace::SpanId id;
  trace::StatusCode status = trace::StatusCode::kUnset;
  bool ended = false;
};

std::string Shown(const common::AttributeValue& value) {
  if (nostd::holds_alternative<bool>(value)) return nostd::get<bool>(value) ? "true" : "false";
  if (nostd::holds_alternative<nostd::string_view>(value)) return std::string(nostd::get<nostd::string_view>(value));
  return "something else";
}

class TestSpan : public trace::Span {
 public:
  explicit TestSpan(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  void SetAttribute(nostd::string_view key, const common::AttributeValue& value) noexcept override {
    seen_->attributes[std::string(key)] = Shown(value);
  }
  void AddEvent(nostd::string_view name) noexcept override { seen_->events.emplace_back(name); }
  void AddEvent(nostd::string_view name, common::SystemTimestamp) noexcept override { AddEvent(name); }
  void AddEvent(nostd::string_view name, common::SystemTimestamp, const common::KeyValueIterable&) noexcept override {
    AddEvent(name);
  }
  void SetStatus(trace::StatusCode code, nostd::string_view) noexcept override { seen_->status = code; }
  void UpdateName(nostd::string_view) noexcept override {}
  void End(const trace::EndSpanOptions&) noexcept override { seen_->ended = true; }
  trace::SpanContext GetContext() const noexcept override {
    const std::uint8_t octets[16] = {1};
    return trace::SpanContext(trace::TraceId(octets), seen_->id, trace::TraceFlags(1), false);
  }
  bool IsRecording() const noexcept override { return true; }

 private:
  const std::shared_ptr<Seen> seen_;
};

class TestTracer : public trace::Tracer, public std::enable_shared_from_this<TestTracer> {
 public:
  nostd::shared_ptr<trace::Span> StartSpan(nostd::string_view name, const common::KeyValueIterable&,
                                           const trace::SpanContextKeyValueIterable&,
                                           const trace::StartSpanOptions& options) noexcept override {
    auto seen = std::make_shared<Seen>();
    seen->name = std::string(name);
    if (nostd::holds_alternative<trace::SpanContext>(options.parent)) {
      seen->parent = nostd::get<trace::SpanContext>(options.parent).span_id();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    const std::uint8_t number[8] = {static_cast<std::uint8_t>(spans.size() + 1)};
    seen->id = trace::SpanId(number);
    spans.push_back(seen);
    return nostd::shared_ptr<trace::Span>(new TestSpan(seen));
  }
  void ForceFlushWithMicroseconds(std::uint64_t) noexcept override {}
  void CloseWithMicroseconds(std::uint64_t) noexcept override {}

  std::mutex mutex;
  std::vector<std::shared_ptr<Seen>> spans;
};

class TestProvider : public trace::TracerProvider {
 public:
  explicit TestProvider(nostd::shared_ptr<trace::Tracer> tracer) : tracer_(std::move(tracer)) {}
  nostd::shared_ptr<trace::Tracer> GetTracer(nostd::string_view, nostd::string_view,
                                             nostd::string_view) noexcept override {
    return tracer_;
  }

 private:
  const nostd::shared_ptr<trace::Tracer> tracer_;
};

class SpansTest : public ::testing::Test {
 protected:
  SpansTest() : tracer_(new TestTracer()), held_(tracer_) {
    trace::Provider::SetTracerProvider(nostd::shared_ptr<trace::TracerProvider>(new TestProvider(held_)));
    otel::ExportTelemetry();
  }
  ~SpansTest() override {
    SetTelemetrySink(nullptr);
    trace::Provider::SetTracerProvider(nostd::shared_ptr<trace::TracerProvider>(new trace::NoopTracerProvider()));
  }

  std::shared_ptr<Seen> Find(const std::string& name) {
    const std::lock_guard<std::mutex> lock(tracer_->mutex);
    for (const auto& span : tracer_->spans) {
      if (span->name == name) return span;
    }
    return nullptr;
  }

  const Isolation isolation_;
  TestTracer* const tracer_;
  const nostd::shared_ptr<trace::Tracer> held_;
};

TEST_F(SpansTest, ABarrierThatWaitedHasASpanWithOneChildAStore) {
  MemoryStore store("blog-posts", {"a", "b"}, std::chrono::milliseconds(50));
  MemoryClient writer = store.Client("a");
  static_cast<void>(store.Client("b"));
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  EXPECT_TRUE(Barrier(BarrierOptions().Timeout(std::chrono::seconds(20))).satisfied());
  const auto span = Find("antipode.barrier");
  const auto child = Find("antipode.wait");
  ASSERT_TRUE(span && child);
  EXPECT_TRUE(span->ended && child->ended);
  EXPECT_EQ(child->parent, span->id);
  EXPECT_EQ(span->attributes.at("antipode.satisfied"), "true");
  EXPECT_EQ(span->attributes.at("antipode.policy"), "raise");
  EXPECT_EQ(span->attributes.at("antipode.site").find("opentelemetry/telemetry_test.cpp:"), 0U);
  EXPECT_EQ(child->attributes.at("antipode.store"), "blog-posts");
  EXPECT_EQ(child->attributes.at("antipode.verdict"), "visible");
  EXPECT_EQ(span->status, trace::StatusCode::kUnset);
}

TEST_F(SpansTest, ABarrierThatFailsSetsErrorType) {
  MemoryStore store("late-posts", {"a", "b"});
  MemoryClient writer = store.Client("a");
  static_cast<void>(store.Client("b"));
  store.Freeze("b");
  const Scope scope;
  ASSERT_TRUE(writer.Set("k", "v").ok());
  EXPECT_FALSE(Barrier(BarrierOptions().Timeout(std::chrono::milliseconds(50))).satisfied());
  EXPECT_EQ(Find("antipode.barrier")->attributes.at("error.type"), "timed_out");
  EXPECT_EQ(Find("antipode.wait")->attributes.at("error.type"), "timed_out");
  EXPECT_EQ(Find("antipode.barrier")->status, trace::StatusCode::kError);
}

TEST_F(SpansTest, AFindingIsAnEventOfTheCurrentSpan) {
  otel::detail::Exporter exporter;
  EXPECT_FALSE(exporter.CurrentSpan().has_value());
  const EventAttributes about = {{"antipode.kind", std::string("behind")},
                                 {"antipode.visible_after", 0.5},
                                 {"antipode.registered", std::vector<std::string>{"posts"}}};
  exporter.Finding(about);  // of nothing
  const auto span = tracer_->Tracer::StartSpan("request");
  const trace::Scope active(span);
  const auto name = exporter.CurrentSpan();
  exporter.Finding(about);
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->trace_id.substr(0, 2), "01");
  EXPECT_EQ(name->span_id.size(), 16U);
  EXPECT_EQ(Find("request")->events, std::vector<std::string>{"antipode.finding"});
}

}  // namespace
}  // namespace antipode::testing
