// A text that needs no memory of its own while it is short.
#ifndef ANTIPODE_SRC_MODEL_SHORT_TEXT_H_
#define ANTIPODE_SRC_MODEL_SHORT_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace antipode {

// What a lineage is held as: a text of up to 256 octets, as of five stores with positions, lies within.
class ShortText {
 public:
  ShortText() = default;
  ShortText(const ShortText& other) { Assign(other.view()); }
  ShortText& operator=(const ShortText&) = delete;

  std::string_view view() const {
    return size_ <= kShort ? std::string_view(within_, size_) : std::string_view(beyond_);
  }
  std::size_t size() const { return size_; }

  void Assign(std::string_view text) {
    size_ = text.size();
    if (size_ <= kShort) {
      text.copy(within_, size_);
    } else {
      beyond_ = text;
    }
  }

  // Puts `text` in the place of what stands there.
  void Replace(std::size_t begin, std::size_t size, std::string_view text) {
    if (size == text.size()) {
      text.copy((size_ <= kShort ? within_ : beyond_.data()) + begin, size);
    } else {
      Assign(std::string(view()).replace(begin, size, text));
    }
  }

 private:
  static constexpr std::size_t kShort = 256;

  std::size_t size_ = 0;
  char within_[kShort];
  std::string beyond_;
};

}  // namespace antipode

#endif  // ANTIPODE_SRC_MODEL_SHORT_TEXT_H_
