// Where the sections of a lineage's text stand.
#ifndef ANTIPODE_SRC_MODEL_SECTION_PLACES_H_
#define ANTIPODE_SRC_MODEL_SECTION_PLACES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace antipode {

// Where a section stands in a text, and how long its head is: the store and its dot.
struct SectionPlace {
  std::uint32_t begin;
  std::uint32_t size;
  std::uint32_t head;
};

// The places of all sections, one behind the other; few of them, as nearly always, need no memory of their own.
class SectionPlaces {
 public:
  SectionPlaces() = default;
  SectionPlaces(const SectionPlaces&) = default;
  SectionPlaces& operator=(const SectionPlaces&) = default;
  // What was moved from is empty: its size must not speak of places that are gone.
  SectionPlaces(SectionPlaces&& other) noexcept
      : size_(std::exchange(other.size_, 0)), few_(other.few_), many_(std::move(other.many_)) {
    other.many_.clear();
  }
  SectionPlaces& operator=(SectionPlaces&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    few_ = other.few_;
    many_ = std::exchange(other.many_, {});
    return *this;
  }

  void push_back(const SectionPlace& place) {
    if (size_ < few_.size()) {
      few_[size_] = place;
    } else {
      if (many_.empty()) many_.assign(few_.begin(), few_.end());
      many_.push_back(place);
    }
    ++size_;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  SectionPlace* begin() { return many_.empty() ? few_.data() : many_.data(); }
  SectionPlace* end() { return begin() + size_; }
  const SectionPlace* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  const SectionPlace* end() const { return begin() + size_; }
  SectionPlace& operator[](std::size_t i) { return begin()[i]; }
  const SectionPlace& operator[](std::size_t i) const { return begin()[i]; }

 private:
  std::size_t size_ = 0;
  std::array<SectionPlace, 8> few_{};
  std::vector<SectionPlace> many_;  // all of them, where they are more
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_SECTION_PLACES_H_
