/// \file
/// Response streams: messages that come before their lineage (spec PROP-28).
#ifndef ANTIPODE_RESPONSE_STREAM_H_
#define ANTIPODE_RESPONSE_STREAM_H_

#include <memory>
#include <string_view>

#include "antipode/carrier.h"
#include "antipode/export.h"
#include "antipode/scope.h"

namespace antipode ANTIPODE_EXPORT {

namespace detail {
/// The name of a gRPC status code that a client makes up by itself, without saying so (PROP-27); empty for any other.
std::string_view MadeUpStatus(int code);
}  // namespace detail

/// One call that is answered by a stream of messages with their lineage at its end (gRPC), for the scope that is
/// current where it is made.
///
///     antipode::ResponseStream stream("post-storage:50051");
///     while (reader->Read(&post)) {
///       stream.Message();                          // before anything is done with it
///       Show(post);
///     }
///     const grpc::Status status = reader->Finish();
///     stream.Finish(status, context);              // or End(trailers), or Lost("deadline exceeded")
///
/// From the first message to the end the scope is incomplete anywhere: for its barriers, and in every copy that leaves
/// or rests. The end joins what the trailer brings before that mark goes. A stream whose handle goes before its end is
/// given up: what it would have brought stays missing (PROP-27). Outside any scope, with `mode=off`, and of a host that
/// is not approved there is nothing to mark. Any thread may call; whoever comes second at the end waits for the join,
/// and changes nothing.
class [[nodiscard]] ResponseStream {
 public:
  /// To be made where the call is sent, or after it, before its first message. `host`: with or without port.
  explicit ResponseStream(std::string_view host);
  ResponseStream(ResponseStream&& other) noexcept;
  /// What this one stood for is given up first, if it is open.
  ResponseStream& operator=(ResponseStream&& other) noexcept;
  ResponseStream(const ResponseStream&) = delete;
  ResponseStream& operator=(const ResponseStream&) = delete;
  ~ResponseStream();

  /// A message is in hand. To be said of each, as the application may have vouched for those before (LIN-23).
  void Message();

  /// The stream's end came, with this in its trailer.
  void End(const Carrier& trailers, Site site = Site());

  /// How a call of gRPC ended, by its `Status` and `ClientContext`: with the server's word, or without it (PROP-27).
  template <typename Status, typename Context>
  void Finish(const Status& status, const Context& context, Site site = Site()) {
    const auto& trailers = context.GetServerTrailingMetadata();
    const std::string_view made_up = detail::MadeUpStatus(static_cast<int>(status.error_code()));
    if (made_up.empty() || !trailers.empty()) {
      End(GrpcCarrier(trailers), site);
    } else {
      Lost(made_up);
    }
  }

  /// It ended without the server's word. `words`: the client's own, without what could be private.
  void Lost(std::string_view words);

  /// The call is known not to have left: nothing is missing.
  void NotSent();

 private:
  struct Call;

  std::unique_ptr<Call> call_;  // null: moved from
};

}  // namespace antipode

#endif  // ANTIPODE_RESPONSE_STREAM_H_
