/// \file
/// A view of adjacent values: what C++20 calls std::span, as far as shims need it.
#ifndef ANTIPODE_SHIM_SPAN_H_
#define ANTIPODE_SHIM_SPAN_H_

#include <cstddef>
#include <type_traits>
#include <vector>

#include "antipode/export.h"

namespace antipode ANTIPODE_EXPORT {

/// Values that lie side by side and belong to somebody else, who keeps them alive for the call.
template <class T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(T* first, std::size_t count) noexcept : first_(first), count_(count) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a vector is given where a view is wanted.
  Span(const std::vector<std::remove_const_t<T>>& values) noexcept : first_(values.data()), count_(values.size()) {}

  constexpr T* begin() const noexcept { return first_; }
  constexpr T* end() const noexcept { return first_ + count_; }
  constexpr std::size_t size() const noexcept { return count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr T& operator[](std::size_t place) const noexcept { return first_[place]; }

 private:
  T* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace antipode

#endif  // ANTIPODE_SHIM_SPAN_H_
