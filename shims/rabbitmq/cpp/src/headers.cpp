#include "headers.h"

#include "antipode/rabbitmq.h"
#include "octets.h"

namespace antipode::rabbitmq {
namespace {

const amqp_field_value_t* Find(const amqp_table_t& headers, std::string_view name) {
  for (int at = headers.num_entries - 1; at >= 0; --at) {
    if (View(headers.entries[at].key) == name) return &headers.entries[at].value;
  }
  return nullptr;
}

}  // namespace

amqp_table_t HeadersOf(const amqp_basic_properties_t* properties) {
  if (properties == nullptr || (properties->_flags & AMQP_BASIC_HEADERS_FLAG) == 0) return amqp_empty_table;
  return properties->headers;
}

bool IsText(const amqp_field_value_t& value) {
  return value.kind == AMQP_FIELD_KIND_UTF8 || value.kind == AMQP_FIELD_KIND_BYTES;
}

std::optional<std::string_view> TextOf(const amqp_table_t& headers, std::string_view name) {
  const amqp_field_value_t* const found = Find(headers, name);
  if (found == nullptr || !IsText(*found)) return std::nullopt;
  return View(found->value.bytes);
}

std::optional<std::int64_t> NumberOf(const amqp_table_t& headers, std::string_view name) {
  const amqp_field_value_t* const found = Find(headers, name);
  if (found == nullptr) return std::nullopt;
  switch (found->kind) {
    case AMQP_FIELD_KIND_I8:
      return found->value.i8;
    case AMQP_FIELD_KIND_U8:
      return found->value.u8;
    case AMQP_FIELD_KIND_I16:
      return found->value.i16;
    case AMQP_FIELD_KIND_U16:
      return found->value.u16;
    case AMQP_FIELD_KIND_I32:
      return found->value.i32;
    case AMQP_FIELD_KIND_U32:
      return found->value.u32;
    case AMQP_FIELD_KIND_I64:
      return found->value.i64;
    default:
      return std::nullopt;
  }
}

bool Has(const amqp_table_t& headers, std::string_view name) { return Find(headers, name) != nullptr; }

std::optional<std::string> MarkOf(const amqp_basic_properties_t& properties) {
  const amqp_table_t headers = HeadersOf(&properties);
  const amqp_field_value_t* const own = Find(headers, kMarkHeader);
  if (own != nullptr && own->kind != AMQP_FIELD_KIND_VOID) {
    if (!IsText(*own)) return std::nullopt;
    return std::string(View(own->value.bytes));
  }
  if ((properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) == 0) return std::nullopt;
  return std::string(View(properties.message_id));
}

void TableCarrier::ForEach(const Visitor& visit) const {
  for (int at = 0; at < headers_.num_entries; ++at) {
    const amqp_table_entry_t& entry = headers_.entries[at];
    if (entry.value.kind == AMQP_FIELD_KIND_VOID) continue;
    visit(View(entry.key), IsText(entry.value) ? View(entry.value.value.bytes) : std::string_view("?"));
  }
}

}  // namespace antipode::rabbitmq
