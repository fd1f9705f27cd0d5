// A message's headers: looking in, and making a copy with the lineage.
#ifndef ANTIPODE_RABBITMQ_HEADERS_H_
#define ANTIPODE_RABBITMQ_HEADERS_H_

#include <amqp.h>
#include <amqp_framing.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "antipode/carrier.h"

namespace antipode::rabbitmq {

// The header that a stream queue adds to each delivery. A stream takes no message back: it closes the connection.
inline constexpr std::string_view kStreamOffset = "x-stream-offset";

// The headers; an empty table where there are none, or no properties.
amqp_table_t HeadersOf(const amqp_basic_properties_t* properties);

// Whether a value is a text or octets, which are the same to us.
bool IsText(const amqp_field_value_t& value);

// The last header of this very name that is a text.
std::optional<std::string_view> TextOf(const amqp_table_t& headers, std::string_view name);

// A number, of whatever width.
std::optional<std::int64_t> NumberOf(const amqp_table_t& headers, std::string_view name);

bool Has(const amqp_table_t& headers, std::string_view name);

// The mark of a message that may have been tracked: its own header, else its `message_id`.
std::optional<std::string> MarkOf(const amqp_basic_properties_t& properties);

// Shows headers to the core. A value that is no text is shown as one that no lineage is: what was there cannot be read,
// and must not look as if nothing had been there. An empty field (V) is none.
class TableCarrier final : public Carrier {
 public:
  explicit TableCarrier(const amqp_table_t& headers) : headers_(headers) {}
  void ForEach(const Visitor& visit) const override;
  void Set(std::string_view, std::string_view) override {}
  void Remove(std::string_view) override {}

 private:
  const amqp_table_t& headers_;
};

}  // namespace antipode::rabbitmq

#endif  // ANTIPODE_RABBITMQ_HEADERS_H_
