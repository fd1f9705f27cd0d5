// In which order a scope's operations go into a history, where they may overlap (spec HIST-5, HIST-26).
//
// What overlaps nothing stands in the scope's own thread. What is begun while another operation of the scope is under
// way stands in a thread of its own, with a message from the scope where it is begun and one back where it ends, and so
// comes before nothing that was begun before its end.
#ifndef ANTIPODE_SRC_DIAGNOSTICS_HISTORY_ORDER_H_
#define ANTIPODE_SRC_DIAGNOSTICS_HISTORY_ORDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/lineage.h"
#include "base/json.h"

namespace antipode::history {

// One scope in the history: its name, and what of it is under way.
struct Strand {
  Strand(std::string named, std::string of, const void* by = nullptr)
      : name(std::move(named)), request(std::move(of)), recorder(by) {}

  const std::string name;
  const std::string request;
  const void* const recorder;      // whose it is
  bool held = false;               // an operation is under way that will stand in the scope's own thread
  std::vector<std::string> loose;  // messages back from operations that ended meanwhile
  int beside = 0;                  // threads beside the scope's own
};

// One operation from its beginning to its end.
struct Step {
  std::shared_ptr<Strand> strand;
  std::optional<Lineage> lineage;  // what the scope carried when it was begun
  std::string name;                // its own thread, where it has one
  std::vector<std::string> heard;  // what that thread hears first
  bool over = false;
};

// The kind of a line, and what it says besides.
struct Told {
  std::string_view kind;
  JsonObject fields;
};

// Puts operations where they belong. Not for several threads at once, but for ids and lines.
class Order {
 public:
  using Put = std::function<void(std::string line)>;

  Order(std::string process, std::string tag, Put put);

  // An id that no other line of any process has.
  std::string NewId();

  // A line with what all of them have (HIST-2).
  JsonObject Line(std::string_view kind, std::string_view scope, std::string_view request = {});

  // An operation of the scope is begun.
  Step Begin(const std::shared_ptr<Strand>& strand, std::optional<Lineage> lineage);

  // It has ended, with these lines; none where nothing happened. `certain`: whether it is known to have taken effect by
  // now. What may do so later comes before nothing here.
  void End(Step& step, const std::vector<Told>& told, bool certain = true);

  // An operation that ends as it begins: a sending, a receipt.
  void Instant(const std::shared_ptr<Strand>& strand, std::string_view kind, std::optional<Lineage> lineage,
               std::string_view message);

  // All that was done in one scope comes before what is done in another from now on.
  void Joined(const std::shared_ptr<Strand>& ended, const std::shared_ptr<Strand>& strand);

 private:
  std::string Tell(const Strand& strand, std::string_view name);
  void Hear(const Strand& strand, std::string_view name, const std::vector<std::string>& messages);

  const std::string process_;
  const std::string tag_;
  const Put put_;
  std::atomic<std::uint64_t> ids_{0};
};

}  // namespace antipode::history

#endif  // ANTIPODE_SRC_DIAGNOSTICS_HISTORY_ORDER_H_
