// The properties of a message as they leave: a copy with the lineage, and the mark of a tracked one (spec PROP-17 to
// PROP-20).
#ifndef ANTIPODE_RABBITMQ_STAMPING_H_
#define ANTIPODE_RABBITMQ_STAMPING_H_

#include <amqp.h>
#include <amqp_framing.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/result.h"
#include "antipode/site.h"
#include "antipode/write_id.h"
#include "message.h"

namespace antipode::rabbitmq {

// A copy of a message's properties that can be given more. What the caller gave is only referred to.
class Properties {
 public:
  explicit Properties(const amqp_basic_properties_t* given);
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;

  const amqp_basic_properties_t& get() const { return properties_; }
  amqp_table_t headers() const { return HeadersNow(); }
  // Takes every header of that very name out.
  void Remove(std::string_view name);
  // Makes this the one header of that name, the last one.
  void Set(std::string_view name, std::string text);
  void SetMessageId(std::string text);
  void RemoveMessageId();
  // Their length on the wire; nothing where they do not fit into `most` octets, or cannot be written at all.
  std::optional<std::size_t> Encoded(std::size_t most) const;

 private:
  amqp_table_t HeadersNow() const;
  void Refer();

  amqp_basic_properties_t properties_{};
  std::vector<amqp_table_entry_t> entries_;
  std::vector<std::shared_ptr<const std::string>> texts_;
};

// A mark that no other message has, and puts it into the properties.
//
// It is the `message_id` where the application gives none. One that the application gives may be used again for another
// message, whose arrival would then prove this one: such a message carries a header of ours instead.
std::string Mark(Properties& properties);

// Whether they can be sent: AMQP wants all of a message's properties in one frame (PROP-19).
bool FitsAFrame(const Properties& properties, int frame_max);

// Puts the lineage in, as far as it may leave and there is room. `own`: the message's own identifier (`track`); without
// one the mark of another message is taken out.
//
// Fails with kPendingWrite (`on_pending=raise`), and with kConfiguration where there is no room and `OnNoRoom::kRaise`
// was said.
Result<void> Stamp(const WrapArguments& told, Properties& properties, std::optional<WriteId> own, int frame_max,
                   const Site& site);

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_STAMPING_H_
