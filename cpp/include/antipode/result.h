/// \file
/// Errors, and `Result<T>`: a value or the error that stood in its way. Nothing is thrown across this API.
#ifndef ANTIPODE_RESULT_H_
#define ANTIPODE_RESULT_H_

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "antipode/export.h"
#include "antipode/message_code.h"

namespace antipode ANTIPODE_EXPORT {

class BarrierResult;

/// What kind of error it is; the names of other languages' classes are given by `ErrorName`.
enum class ErrorCode {
  kTimedOut,          ///< The deadline passed and a write was still not visible here (`on_timeout=raise`).
  kUnproven,          ///< No proof is possible that a write is visible here, however long one waits.
  kIncomplete,        ///< `require_complete`, and something was left unjudged: a store elsewhere, a server, a loss.
  kRedeliver,         ///< For the consumer: this message goes back to the queue after `redeliver_delay`.
  kConfiguration,     ///< A setting, or the way in which a call was made, cannot be right.
  kUnknownStore,      ///< A barrier names a store that this process has not registered.
  kUnfitStore,        ///< A datastore's topology, settings or rights do not allow a proof; the message has the cure.
  kBlockingCall,      ///< A blocking call where nothing may block.
  kPendingWrite,      ///< A lineage was about to leave while a write had no position (`on_pending=raise`, for tests).
  kMalformedLineage,  ///< A text is no lineage in the wire form (spec WIRE).
};

/// The error's name as Python and the contract have it: `BarrierTimeout`, `ConfigurationError` and so on.
std::string_view ErrorName(ErrorCode code);

/// What happened, why, and what to do about it.
struct Error {
  /// `words` say what is wrong and what cures it, and `number` is their code.
  Error(ErrorCode kind, MessageCode number, std::string_view words,
        std::shared_ptr<const BarrierResult> proved = nullptr)
      : code(kind), message_code(number), message(WithCode(words, number)), result(std::move(proved)) {}

  /// The words of `message` without the code, for a message that holds this one.
  std::string Words() const;

  ErrorCode code;
  /// `antipode explain CODE` says what it means and what to do (OBS-14).
  MessageCode message_code;
  /// The words with their code behind the first line.
  std::string message;
  /// What the barrier proved until then; null for errors that are no barrier's.
  std::shared_ptr<const BarrierResult> result;
};

namespace detail {
/// Ends the process: a value was asked of a result that holds an error, which is the programmer's mistake.
[[noreturn]] void AbortOnError(const Error& error);
}  // namespace detail

/// A value, or the error that stood in its way. Ask `ok()` before `value()`: without one the process ends.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: a value is a result
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: and so is an error

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& { return Checked(*this); }
  T& value() & { return Checked(*this); }
  T&& value() && { return std::move(Checked(*this)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  template <typename U>
  T value_or(U&& other) const& {
    return ok() ? std::get<0>(held_) : static_cast<T>(std::forward<U>(other));
  }

  /// The error; only where `ok()` is false.
  const Error& error() const { return std::get<1>(held_); }

 private:
  template <typename Self>
  static auto& Checked(Self& self) {
    if (!self.ok()) detail::AbortOnError(std::get<1>(self.held_));
    return std::get<0>(self.held_);
  }

  std::variant<T, Error> held_;
};

/// Done, or the error that stood in the way.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::make_shared<const Error>(std::move(error))) {}  // NOLINT

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::shared_ptr<const Error> error_;
};

}  // namespace antipode

#endif  // ANTIPODE_RESULT_H_
