// A wrapped connection: publishing, consuming, what goes back, transactions (spec SHIM-2, SHIM-6, SHIM-11, SHIM-17).
#ifndef ANTIPODE_RABBITMQ_INSIDE_H_
#define ANTIPODE_RABBITMQ_INSIDE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/rabbitmq.h"
#include "antipode/shim/write.h"
#include "message.h"
#include "returns.h"
#include "wire.h"

namespace antipode::rabbitmq {

class Connection::Inside {
 public:
  Inside(amqp_connection_state_t taken, std::shared_ptr<const WrapArguments> told, Duration call_timeout);
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside();

  amqp_connection_state_t state() const { return wire_.state(); }
  const WrapArguments& told() const { return *told_; }
  const std::optional<Reply>& broken() const { return wire_.broken(); }

  Reply ChannelOpen(amqp_channel_t channel);
  Reply ChannelClose(amqp_channel_t channel);
  Reply BasicQos(amqp_channel_t channel, std::uint16_t prefetch_count);
  Reply ConfirmSelect(amqp_channel_t channel);
  Published Publish(amqp_channel_t channel, std::string_view exchange, std::string_view routing_key,
                    std::string_view body, const amqp_basic_properties_t* properties, bool mandatory, const Site& site);
  bool TakeReturned(Envelope* envelope);

  Reply TxSelect(amqp_channel_t channel);
  Reply TxCommit(amqp_channel_t channel);
  Reply TxRollback(amqp_channel_t channel);

  Reply Consume(amqp_channel_t channel, std::string_view queue, const ConsumeOptions& options);
  Reply Next(Envelope* envelope, Duration wait);
  Reply Get(amqp_channel_t channel, std::string_view queue, Envelope* envelope, bool no_ack);
  Reply Ack(const Envelope& envelope, bool multiple);
  Reply Ack(amqp_channel_t channel, std::uint64_t tag, bool multiple);
  Reply Nack(amqp_channel_t channel, std::uint64_t tag, bool multiple, bool requeue);
  Reply Reject(amqp_channel_t channel, std::uint64_t tag, bool requeue);
  Reply Recover(amqp_channel_t channel, bool requeue);
  Result<void> GiveBack(const Envelope& envelope, const Error& why);

  Reply DeclareTap(amqp_channel_t channel, std::string_view exchange, std::string_view queue,
                   std::string_view routing_key, std::int64_t max_bytes);

 private:
  // The tracked messages that a channel has published since its last commit.
  struct PublishedMessages {
    std::unique_ptr<Writing> write;
    Opaque version;
  };
  struct Channel {
    bool transactional = false;
    std::vector<PublishedMessages> sent;
    bool confirms = false;
    std::uint64_t published = 0;
    Returns returns;
    // Tags of deliveries hold within it: it ends with the channel, and where the broker takes all messages back.
    std::uint64_t life = 0;
    std::string ended;  // why the life before ended
  };

  struct Parcel;

  Published Send(Parcel& parcel);
  Published WaitForConfirm(Parcel& parcel);
  std::optional<Reply> TakeReturned(const Parcel& parcel);
  bool IsThis(const Incoming& returned, const Parcel& parcel) const;
  Reply Settle(amqp_channel_t channel, std::uint64_t tag, bool multiple,
               const std::function<int(std::uint64_t)>& call);
  std::optional<Reply> Refuse(std::string_view call, amqp_channel_t channel, std::uint64_t tag);
  void Prepare(Envelope& envelope, bool no_ack);
  std::string NotSettledHere(const Envelope& envelope);
  void ReturnDue();
  void Return(amqp_channel_t channel, std::uint64_t tag);
  std::optional<Clock::time_point> NextDue() const;
  void Drop(Channel& channel);
  void EndLife(Channel& channel, std::string_view why);

  Wire wire_;
  const std::shared_ptr<const WrapArguments> told_;
  std::map<amqp_channel_t, Channel> channels_;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_INSIDE_H_
