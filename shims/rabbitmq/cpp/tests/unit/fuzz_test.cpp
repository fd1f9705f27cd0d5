// Whatever a message's headers hold, a consumer goes on: what cannot be read is incomplete, and never looks empty
// (PROP-17, WIRE-25).
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "antipode/logs.h"
#include "antipode/messages.h"
#include "antipode/testing/isolated.h"
#include "broker.h"
#include "headers.h"
#include "message.h"
#include "octets.h"
#include "shim.h"
#include "stamping.h"

namespace antipode::rabbitmq {
namespace {

// A table of anything, with what its octets stand in.
class AnyTable {
 public:
  AnyTable() = default;
  AnyTable(AnyTable&&) = default;
  AnyTable& operator=(AnyTable&&) = default;

  static AnyTable Make(int depth) {
    AnyTable made;
    const int count = *rc::gen::inRange(0, 5);
    auto& entries = *made.entries_.emplace_back(std::make_unique<std::vector<amqp_table_entry_t>>());
    for (int at = 0; at < count; ++at) {
      amqp_table_entry_t entry{};
      const std::string name =
          *rc::gen::oneOf(rc::gen::element<std::string>("antipode-lineage", "antipode_lineage", "Antipode-Lineage",
                                                        "antipode-mark", "x-other"),
                          rc::gen::container<std::string>(8, rc::gen::arbitrary<char>()));
      entry.key = made.Keep(name);
      entry.value = made.Value(depth);
      entries.push_back(entry);
    }
    made.table_ = {static_cast<int>(entries.size()), entries.data()};
    return made;
  }

  const amqp_table_t& get() const { return table_; }

 private:
  amqp_bytes_t Keep(const std::string& text) {
    return Octets(*texts_.emplace_back(std::make_unique<std::string>(text)));
  }

  amqp_field_value_t Value(int depth) {
    amqp_field_value_t value{};
    switch (*rc::gen::inRange(0, depth > 0 ? 9 : 7)) {
      case 0:
        value.kind = AMQP_FIELD_KIND_UTF8;
        value.value.bytes = Keep(*rc::gen::element<std::string>("1", "1~a..e.1", "1~a.k._.m", "1~_.i", "1~a..e.1~_.x.y",
                                                                " 1~a..e.1 ", "1~a..e.1;p=1", "1~a..e.1,1~b..e.2", "",
                                                                "1~" + std::string(5000, 'a')));
        return value;
      case 1:
        value.kind = AMQP_FIELD_KIND_BYTES;
        value.value.bytes =
            Keep(*rc::gen::container<std::string>(rc::gen::elementOf(std::string("1~._-aAZ0%;, \t\n"))));
        return value;
      case 2:
        value.kind = AMQP_FIELD_KIND_UTF8;
        value.value.bytes = Keep(*rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
        return value;
      case 3:
        value.kind = AMQP_FIELD_KIND_VOID;
        return value;
      case 4:
        value.kind = AMQP_FIELD_KIND_I64;
        value.value.i64 = *rc::gen::arbitrary<std::int64_t>();
        return value;
      case 5:
        value.kind = AMQP_FIELD_KIND_BOOLEAN;
        value.value.boolean = 1;
        return value;
      case 6:
        value.kind = AMQP_FIELD_KIND_DECIMAL;
        value.value.decimal = {2, 42};
        return value;
      case 7: {
        AnyTable inner = Make(depth - 1);
        value.kind = AMQP_FIELD_KIND_TABLE;
        value.value.table = inner.table_;
        Adopt(std::move(inner));
        return value;
      }
      default: {
        auto& values = *arrays_.emplace_back(std::make_unique<std::vector<amqp_field_value_t>>());
        const int count = *rc::gen::inRange(0, 3);
        for (int at = 0; at < count; ++at) values.push_back(Value(depth - 1));
        value.kind = AMQP_FIELD_KIND_ARRAY;
        value.value.array = {static_cast<int>(values.size()), values.data()};
        return value;
      }
    }
  }

  void Adopt(AnyTable&& inner) {
    texts_.splice(texts_.end(), inner.texts_);
    entries_.splice(entries_.end(), inner.entries_);
    arrays_.splice(arrays_.end(), inner.arrays_);
  }

  std::list<std::unique_ptr<std::string>> texts_;
  std::list<std::unique_ptr<std::vector<amqp_table_entry_t>>> entries_;
  std::list<std::unique_ptr<std::vector<amqp_field_value_t>>> arrays_;
  amqp_table_t table_{0, nullptr};
};

amqp_basic_properties_t With(const amqp_table_t& headers) {
  amqp_basic_properties_t made{};
  made._flags = AMQP_BASIC_HEADERS_FLAG;
  made.headers = headers;
  return made;
}

bool IsOurName(std::string_view name) { return IsSameHeader(name, kLineageHeader) || IsSameHeader(name, kJmsProperty); }

class FuzzTest : public ::testing::Test {
 protected:
  FuzzTest() { SetLogSink([](LogLevel, std::string_view) {}); }
  ~FuzzTest() override { SetLogSink({}); }
  testing::Isolated isolated_;
};

RC_GTEST_FIXTURE_PROP(FuzzTest, NoHeadersMakeAScopeFail, ()) {
  const AnyTable table = AnyTable::Make(2);
  amqp_envelope_t envelope{};
  envelope.message.properties = With(table.get());
  static_cast<void>(MarkOf(envelope.message.properties));
  static_cast<void>(NumberOf(table.get(), kStreamOffset));
  const Lineage lineage = ScopeOf(envelope).lineage();
  const auto again = Lineage::Deserialize(lineage.Serialize());
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == lineage);
  std::map<bool, std::string> lines;  // those of either name, joined as lines of one header are (WIRE-28, WIRE-30)
  TableCarrier(table.get()).ForEach([&](std::string_view name, std::string_view value) {
    if (!IsOurName(name)) return;
    const auto [found, is_first] = lines.try_emplace(IsSameHeader(name, kJmsProperty), value);
    if (!is_first) found->second += "," + std::string(value);
  });
  const bool can_be_read =
      std::all_of(lines.begin(), lines.end(), [](const auto& line) { return IsLineageText(line.second); });
  RC_ASSERT(!lines.empty() || lineage.empty());
  RC_ASSERT(can_be_read || !lineage.IsComplete());  // what cannot be read never looks empty
}

RC_GTEST_FIXTURE_PROP(FuzzTest, AnyHeadersCanBePublishedAgain, ()) {
  const AnyTable table = AnyTable::Make(2);
  WrapArguments told;
  told.store = *JoinStore(RabbitMQType(), StoreOptions("notifications"));
  told.stamped = *rc::gen::arbitrary<bool>();
  const amqp_basic_properties_t given = With(table.get());
  Properties properties(&given);
  const Scope scope;
  Append(*WriteId::Position("blog", "0-1", 42));
  RC_ASSERT(Stamp(told, properties, std::nullopt, 131072, Site()).ok());
  RC_ASSERT(given.headers.num_entries == table.get().num_entries);
  std::vector<std::string> before;  // no header of the application's is lost, or changes its place among them
  std::vector<std::string> after;
  const auto names = [](const amqp_table_t& headers, std::vector<std::string>& found) {
    for (int at = 0; at < headers.num_entries; ++at) {
      const std::string name(View(headers.entries[at].key));
      if (name != kLineageHeader && name != kJmsProperty && name != kMarkHeader) found.push_back(name);
    }
  };
  names(table.get(), before);
  names(properties.headers(), after);
  RC_ASSERT(before == after);
  if (!Has(table.get(), kLineageHeader) && !Has(table.get(), kJmsProperty)) {
    RC_ASSERT(*TextOf(properties.headers(), kLineageHeader) == "1~blog..0-1.42");
  }
}

// Octets off the wire, through rabbitmq-c's own reader of tables, into ours.
RC_GTEST_FIXTURE_PROP(FuzzTest, OctetsOffTheWireAreReadOrRefused, ()) {
  std::string octets = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  if (*rc::gen::arbitrary<bool>()) {  // or such as were a table, with some of them changed
    const AnyTable table = AnyTable::Make(2);
    std::string encoded(65536, '\0');
    std::size_t length = 0;
    amqp_table_t written = table.get();
    if (amqp_encode_table({encoded.size(), encoded.data()}, &written, &length) == AMQP_STATUS_OK) {
      octets = encoded.substr(0, length);
    }
    const int changes = *rc::gen::inRange(0, 3);
    for (int count = 0; count < changes && !octets.empty(); ++count) {
      octets[*rc::gen::inRange<std::size_t>(0, octets.size())] = *rc::gen::arbitrary<char>();
    }
  }
  amqp_pool_t pool;
  init_amqp_pool(&pool, 4096);
  amqp_table_t table{0, nullptr};
  std::size_t offset = 0;
  if (amqp_decode_table({octets.size(), octets.data()}, &pool, &table, &offset) == AMQP_STATUS_OK) {
    amqp_envelope_t envelope{};
    envelope.message.properties = With(table);
    static_cast<void>(MarkOf(envelope.message.properties));
    const Lineage lineage = ScopeOf(envelope).lineage();
    RC_ASSERT(Lineage::Deserialize(lineage.Serialize()).ok());
  }
  empty_amqp_pool(&pool);
}

}  // namespace
}  // namespace antipode::rabbitmq
