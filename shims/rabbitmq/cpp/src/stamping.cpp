#include "stamping.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <utility>

#include "antipode/logs.h"
#include "antipode/messages.h"
#include "antipode/shim/shim_tools.h"
#include "headers.h"
#include "octets.h"

namespace antipode::rabbitmq {
namespace {

// What a content header frame has around its properties: 7 octets before its payload and 1 behind it, and in the
// payload the class, the weight and the body's length.
constexpr std::size_t kFrameOverhead = 7 + 1 + 2 + 2 + 8;
constexpr std::size_t kMarkLength = 32;
constexpr std::size_t kUsualFrame = 131072;

// A random UUID as 32 hexadecimal digits. From the system, so that the child of a fork makes others.
std::string RandomMark() {
  std::array<unsigned char, 16> octets{};
  if (getrandom(octets.data(), octets.size(), 0) != static_cast<ssize_t>(octets.size())) {
    std::random_device source;
    for (unsigned char& octet : octets) octet = static_cast<unsigned char>(source());
  }
  octets[6] = static_cast<unsigned char>((octets[6] & 0x0f) | 0x40);
  octets[8] = static_cast<unsigned char>((octets[8] & 0x3f) | 0x80);
  std::string mark;
  for (const unsigned char octet : octets) {
    mark += "0123456789abcdef"[octet >> 4];
    mark += "0123456789abcdef"[octet & 15];
  }
  return mark;
}

bool IsOurs(const amqp_field_value_t& value) { return IsText(value) && IsLineageText(View(value.value.bytes)); }

// The lineages among the headers: those of a message whose properties are published again.
struct HeaderLineages {
  std::vector<amqp_table_entry_t> entries;
  bool foreign = false;  // the application has something else under our name

  explicit HeaderLineages(const amqp_table_t& headers) {
    for (int at = 0; at < headers.num_entries; ++at) {
      const amqp_table_entry_t& entry = headers.entries[at];
      const std::string_view name = View(entry.key);
      if (name != kLineageHeader && name != kJmsProperty) continue;
      if (IsOurs(entry.value)) {
        entries.push_back(entry);
      } else if (name == kLineageHeader && entry.value.kind != AMQP_FIELD_KIND_VOID) {
        foreign = true;
      }
    }
  }

  amqp_table_t table() { return {static_cast<int>(entries.size()), entries.data()}; }
};

// Whether these are headers of the very message that the scope was opened for: their lineage is in the scope.
bool CameWith(const ScopePtr& scope, const HeaderLineages& carried) {
  if (scope == nullptr || !scope->delivery()) return false;
  const auto* const delivered = dynamic_cast<const DeliveredState*>(scope->delivery()->message.get());
  if (delivered == nullptr) return false;
  return std::all_of(carried.entries.begin(), carried.entries.end(), [&](const amqp_table_entry_t& entry) {
    return View(entry.value.value.bytes) == (View(entry.key) == kLineageHeader ? delivered->lineage : delivered->jms);
  });
}

// Takes the lineage of another message whose properties are published here, as far as it may be believed. Where it may
// not, nothing says what this one depends on (SCOPE-31).
void Receive(const WrapArguments& told, HeaderLineages& carried, ::antipode::Stamp& stamp) {
  MessageOptions options;
  options.lineage_in = told.lineage_in;
  options.sender = "a message to " + told.store->name();
  const amqp_table_t table = carried.table();
  const ScopePtr sender = CurrentScope();
  const Scope other = MessageScope(TableCarrier(table), options);
  NoteJoined(other.shared(), sender);
  stamp.carried = other.lineage();
  const std::vector<Gap> gaps = other->gaps();
  const auto is_dropped = [](const Gap& gap) { return gap.reason == "untrusted"; };
  stamp.is_anothers = std::none_of(gaps.begin(), gaps.end(), is_dropped);
}

// Takes another message's mark out, whose arrival this one would prove (PROP-37). A `message_id` is a mark where the
// lineage that came with it, or the scope's, names it.
void RemoveMark(Properties& properties) {
  if (Has(properties.headers(), kMarkHeader)) properties.Remove(kMarkHeader);
  if ((properties.get()._flags & AMQP_BASIC_MESSAGE_ID_FLAG) == 0) return;
  const std::string_view id = View(properties.get().message_id);
  if (id.size() != kMarkLength || id.find_first_not_of("0123456789abcdef") != std::string_view::npos) return;
  const auto names = [id](std::string_view text) { return text.find(id) != std::string_view::npos; };
  const HeaderLineages carried(properties.headers());
  const ScopePtr scope = CurrentScope();
  bool is_mark = scope != nullptr && names(scope->Known().Serialize());
  for (const amqp_table_entry_t& entry : carried.entries) is_mark = is_mark || names(View(entry.value.value.bytes));
  if (is_mark) properties.RemoveMessageId();
}

// The lineage would make the header frame too long: it is left out, and said so, before anything is sent.
Result<void> NoRoom(const WrapArguments& told, Properties& properties, int frame_max) {
  const std::string& name = told.store->name();
  properties.Remove(kLineageHeader);
  if (!FitsAFrame(properties, frame_max)) return {};  // too long without us: it is not sent
  const std::string words = "a message to " + name + " has no room for its lineage: its headers fill a frame of " +
                            std::to_string(frame_max) + " bytes";
  if (told.on_no_room == OnNoRoom::kRaise) {
    return Error{ErrorCode::kConfiguration, "AP510",
                 words + ". Put less into its headers, raise frame_max, or say WhenNoRoom(OnNoRoom::kSend)."};
  }
  CountIncomplete("budget", name);
  logs::Warn("AP510", "no room " + name, words + "; it is sent without. Put less into its headers.");
  // Where there is room for that much, what was lost does not look empty.
  properties.Set(kLineageHeader, TextAtRest(Lineage().MarkedIncomplete()));
  if (!FitsAFrame(properties, frame_max)) properties.Remove(kLineageHeader);
  return {};
}

}  // namespace

Properties::Properties(const amqp_basic_properties_t* given) {
  if (given != nullptr) properties_ = *given;
  const amqp_table_t headers = HeadersOf(given);
  entries_.assign(headers.entries, headers.entries + headers.num_entries);
  Refer();
}

amqp_table_t Properties::HeadersNow() const { return HeadersOf(&properties_); }

void Properties::Refer() {
  properties_.headers = {static_cast<int>(entries_.size()), entries_.data()};
  if (!entries_.empty()) properties_._flags |= AMQP_BASIC_HEADERS_FLAG;
}

void Properties::Remove(std::string_view name) {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [name](const amqp_table_entry_t& entry) { return View(entry.key) == name; }),
                 entries_.end());
  Refer();
}

void Properties::Set(std::string_view name, std::string text) {
  Remove(name);
  texts_.push_back(std::make_shared<const std::string>(name));
  const std::string_view key = *texts_.back();
  texts_.push_back(std::make_shared<const std::string>(std::move(text)));
  amqp_table_entry_t entry{};
  entry.key = Octets(key);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = Octets(*texts_.back());
  entries_.push_back(entry);
  Refer();
}

void Properties::SetMessageId(std::string text) {
  texts_.push_back(std::make_shared<const std::string>(std::move(text)));
  properties_.message_id = Octets(*texts_.back());
  properties_._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
}

void Properties::RemoveMessageId() {
  properties_.message_id = amqp_empty_bytes;
  properties_._flags &= ~static_cast<amqp_flags_t>(AMQP_BASIC_MESSAGE_ID_FLAG);
}

std::optional<std::size_t> Properties::Encoded(std::size_t most) const {
  thread_local std::vector<char> buffer;
  if (buffer.size() < most) buffer.resize(most);
  // rabbitmq-c takes what it only reads by a plain pointer.
  const int length = amqp_encode_properties(AMQP_BASIC_CLASS, const_cast<amqp_basic_properties_t*>(&properties_),
                                            {most, buffer.data()});
  if (length < 0) return std::nullopt;
  return static_cast<std::size_t>(length);
}

bool FitsAFrame(const Properties& properties, int frame_max) {
  const std::size_t most = frame_max > 0 ? static_cast<std::size_t>(frame_max) : kUsualFrame;
  return most > kFrameOverhead && properties.Encoded(most - kFrameOverhead).has_value();
}

std::string Mark(Properties& properties) {
  std::string mark = RandomMark();
  if ((properties.get()._flags & AMQP_BASIC_MESSAGE_ID_FLAG) == 0) {
    properties.SetMessageId(mark);
    properties.Remove(kMarkHeader);  // came along with properties of another message
  } else {
    properties.Set(kMarkHeader, mark);
  }
  return mark;
}

Result<void> Stamp(const WrapArguments& told, Properties& properties, std::optional<WriteId> own, int frame_max,
                   const Site& site) {
  if (!own) RemoveMark(properties);
  HeaderLineages carried(properties.headers());
  if (carried.foreign) {
    logs::Warn(
        "AP405", "foreign header " + told.store->name(),
        "a message to " + told.store->name() + " has a header " + std::string(kLineageHeader) +
            " that is no lineage; it is left as it is, so the message carries no lineage. Give the application's "
            "header another name.");
    return {};
  }
  ::antipode::Stamp stamp;
  stamp.lineage_out = told.lineage_out;
  stamp.own = std::move(own);
  stamp.stamped = told.stamped && told.store->records();
  if (!carried.entries.empty() && !CameWith(CurrentScope(), carried)) Receive(told, carried, stamp);
  Result<std::optional<std::string>> text = StampedText(stamp, site);
  if (!text) return text.error();
  if (!*text && carried.entries.empty()) return {};
  for (const std::string_view name :
       {kLineageHeader, kJmsProperty}) {  // what was not believed must not go on (TRUST-5)
    for (const amqp_table_entry_t& entry : carried.entries) {
      if (View(entry.key) != name) continue;
      properties.Remove(name);
      break;
    }
  }
  if (!*text) return {};
  properties.Set(kLineageHeader, **text);
  if (FitsAFrame(properties, frame_max)) return {};
  return NoRoom(told, properties, frame_max);
}

}  // namespace antipode::rabbitmq
