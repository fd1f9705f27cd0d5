// What tells one tracked message from every other: the memory of marks that have arrived.
#ifndef ANTIPODE_RABBITMQ_MARKS_H_
#define ANTIPODE_RABBITMQ_MARKS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>

namespace antipode::rabbitmq {

// The last so many marks that were seen. One thread at a time.
class Marks {
 public:
  explicit Marks(std::size_t most) : most_(most) {}

  // A message with this mark has arrived; once more is the same.
  void Add(std::string_view mark) {
    if (!seen_.emplace(mark).second) return;
    order_.emplace_back(mark);
    while (order_.size() > most_) {
      seen_.erase(order_.front());
      order_.pop_front();
    }
  }

  bool Has(const std::string& mark) const { return seen_.count(mark) != 0; }
  std::size_t size() const { return seen_.size(); }

 private:
  std::size_t most_;
  std::unordered_set<std::string> seen_;
  std::deque<std::string> order_;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_MARKS_H_
