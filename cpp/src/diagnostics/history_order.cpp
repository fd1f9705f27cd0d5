#include "diagnostics/history_order.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "diagnostics/history_spelling.h"

namespace antipode::history {

Order::Order(std::string process, std::string tag, Put put)
    : process_(std::move(process)), tag_(std::move(tag)), put_(std::move(put)) {}

std::string Order::NewId() { return tag_ + std::to_string(++ids_); }

JsonObject Order::Line(std::string_view kind, std::string_view scope, std::string_view request) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  JsonObject line;
  line.Integer("history", 1).Text("id", NewId()).Text("kind", kind).Text("process", process_).Text("scope", scope);
  if (!request.empty()) line.Text("request", request);
  line.Number("time", std::chrono::duration<double>(now).count());
  return line;
}

Step Order::Begin(const std::shared_ptr<Strand>& strand, std::optional<Lineage> lineage) {
  if (!strand->held) {
    strand->held = true;
    return {strand, std::move(lineage), {}, {}};
  }
  std::vector<std::string> heard = {Tell(*strand, strand->name)};
  heard.insert(heard.end(), strand->loose.begin(), strand->loose.end());
  return {strand, std::move(lineage), strand->name + "+" + std::to_string(++strand->beside), std::move(heard)};
}

void Order::End(Step& step, const std::vector<Told>& told, bool certain) {
  if (std::exchange(step.over, true)) return;
  Strand& strand = *step.strand;
  const bool is_own = step.name.empty();
  std::vector<std::string> loose;
  if (is_own) {  // first: whatever fails below, the scope's thread is free
    strand.held = false;
    loose.swap(strand.loose);
  }
  std::string name = is_own ? strand.name : step.name;
  if (is_own && !certain) {
    name += "+" + std::to_string(++strand.beside);
    if (!told.empty()) step.heard = {Tell(strand, strand.name)};
  }
  if (!told.empty()) {
    Hear(strand, name, step.heard);
    for (const Told& each : told) {
      JsonObject line = Line(each.kind, name, strand.request);
      if (step.lineage) line.Text("lineage", SpelledLineage(*step.lineage));
      put_(line.With(each.fields).Written());
    }
  }
  if (is_own) {
    Hear(strand, strand.name, loose);
  } else if (!told.empty() && certain) {
    std::string back = Tell(strand, name);
    if (!strand.held) {
      Hear(strand, strand.name, {back});
      return;
    }
    const auto is_heard = [&](const std::string& each) {
      return std::find(step.heard.begin(), step.heard.end(), each) != step.heard.end();
    };
    strand.loose.erase(std::remove_if(strand.loose.begin(), strand.loose.end(), is_heard), strand.loose.end());
    strand.loose.push_back(std::move(back));
  }
}

void Order::Instant(const std::shared_ptr<Strand>& strand, std::string_view kind, std::optional<Lineage> lineage,
                    std::string_view message) {
  Step step = Begin(strand, std::move(lineage));
  End(step, {{kind, JsonObject().Text("message", message)}});
}

void Order::Joined(const std::shared_ptr<Strand>& ended, const std::shared_ptr<Strand>& strand) {
  const std::string message = NewId();
  Instant(ended, "send", std::nullopt, message);
  Instant(strand, "receive", std::nullopt, message);
}

// A message within the scope, which carries all that its sender depends on (HIST-12).
std::string Order::Tell(const Strand& strand, std::string_view name) {
  std::string message = NewId();
  put_(Line("send", name, strand.request).Text("message", message).Written());
  return message;
}

void Order::Hear(const Strand& strand, std::string_view name, const std::vector<std::string>& messages) {
  for (const std::string& message : messages) {
    put_(Line("receive", name, strand.request).Text("message", message).Written());
  }
}

}  // namespace antipode::history
