#include "diagnostics/followed_read.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "antipode/logs.h"
#include "antipode/wire.h"
#include "base/in_force.h"
#include "base/observers.h"
#include "diagnostics/counts.h"
#include "diagnostics/following.h"
#include "diagnostics/measured.h"
#include "diagnostics/record.h"
#include "diagnostics/records.h"
#include "diagnostics/repeats.h"
#include "diagnostics/sampling.h"
#include "diagnostics/telemetry.h"
#include "model/digest.h"
#include "store/server.h"

namespace antipode {
namespace {

using following::Write;
using following::Writes;

// Entries of objects that one read is followed for, at most, where the shim does not know which keys it reads.
constexpr std::size_t kMostEntries = 16;

// What follows a read never reaches the application that reads; false where it failed.
template <typename Do>
bool Quietly(const Do& what) noexcept {
  try {
    what();
    return true;
  } catch (const std::exception& error) {
    logs::Warn("AP603", "followed read", std::string("a read could not be followed: ") + error.what());
  } catch (...) {
    logs::Warn("AP603", "followed read", "a read could not be followed");
  }
  return false;
}

std::optional<Digest> DigestOf(const FollowedRead::Octets& octets) {
  const std::optional<std::string> value = octets();
  if (!value || value->size() > FollowedRead::kMostOctets) return std::nullopt;
  return Sha256(*value);
}

bool IsHeld(const Server& server, const WriteId& id) {
  return id.is_position() && server.impl().Holds(id.ordered()->epoch, id.ordered()->counter);
}

}  // namespace

// What is followed, when the application has gone on long since.
struct FollowedRead::Inside : std::enable_shared_from_this<Inside> {
  void Count(std::string_view what) const { counts::Add(what, telemetry::Bounded(site), store); }

  // Whether the value that was read is itself this write, or a later one of its object.
  bool Shows(const WriteId& id, const std::map<std::string, Version>& versions) {
    if (id.is_position()) return false;
    const auto found = versions.find(id.key());
    if (found == versions.end()) return false;
    if (id.version() == found->second) return true;
    const Ordered* wanted = id.ordered();
    const auto* there = std::get_if<Ordered>(&found->second);
    if (wanted == nullptr || there == nullptr || wanted->epoch != there->epoch) return false;
    if (there->counter < wanted->counter) older = std::pair(*wanted, *there);
    return there->counter > wanted->counter;
  }

  void Over(const std::shared_ptr<Server>& server, const Came& came) {
    std::map<std::string, Version> versions = came.versions;
    for (const auto& [key, version] : came.versions) versions.emplace(wire::HashedKey(key), version);
    following::Wanted wanted;
    for (const WriteId& id : ids) {
      if (!Shows(id, versions)) wanted.emplace_back(server, id);
    }
    const bool proven =
        std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) { return IsHeld(*server, each.second); });
    if (proven) {
      Count("followed_reads");
      return;
    }
    std::vector<WriteId> missing;
    for (const auto& each : wanted) missing.push_back(each.second);
    if (looks && looks->Hold(server->address(), missing)) barrier = looks->site;
    if (!older && came.value && came.repeat && InForce()->repeat_reads) {
      digest = DigestOf(came.value);
      if (digest) repeat = came.repeat;
    }
    const auto over = [self = shared_from_this()](const Writes& writes) { self->Followed(writes); };
    if (following::Follow(wanted, over)) Count("followed_reads");
  }

  // Everything is seen, or given up; called by the engine's thread, which must not wait for a repeat.
  void Followed(const Writes& writes) {
    Writes late;
    std::copy_if(writes.begin(), writes.end(), std::back_inserter(late),
                 [](const Write& write) { return write.Late(); });
    if (older) {
      Put("stale", writes, "version");
      return;
    }
    if (late.empty()) {
      if (!std::all_of(writes.begin(), writes.end(), [](const Write& write) { return write.ThereAtOnce(); })) {
        Count("unjudged_reads");
      }
      return;
    }
    const bool seen = std::all_of(writes.begin(), writes.end(), [](const Write& write) { return write.visible_after; });
    if (repeat && seen &&
        Repeats::Instance().Later([self = shared_from_this(), late](bool may) { self->Compare(late, may); })) {
      return;
    }
    Put("behind", late, {});
  }

  // Reads again, and says whether the result is another one now.
  void Compare(const Writes& late, bool may) {
    bool other = false;
    if (may && digest) {
      const std::optional<Digest> now = Again();
      other = now && *now != *digest;
    }
    Put(other ? "stale" : "behind", late, other ? "repeat" : "");
  }

  std::optional<Digest> Again() const {
    std::optional<Digest> now;
    const bool read = Quietly([&] { now = DigestOf(repeat); });
    // GCC 12 leaves `now` as it finds it where an exception comes, and takes that for a digest.
    return read ? now : std::nullopt;
  }

  void Put(std::string_view kind, const Writes& writes, std::string_view confirmed) {
    Count(kind);
    telemetry::Finding(kind, site);
    std::vector<const Write*> all;
    for (const Write& write : writes) all.push_back(&write);
    Record record(kind, moment);
    record.Text("site", site)
        .CameFrom(origin)
        .Text("store", store)
        .Text("store_kind", store_kind)
        .Text("server", writes.front().server->address())
        .VisibleAfter(following::VisibleAfter(all));
    if (!confirmed.empty()) record.Text("confirmed", confirmed);
    if (!barrier.empty()) record.Text("barrier", barrier);
    if (older) {
      record.Position("wanted", older->first).Position("seen", older->second);
    } else {
      AddPositions(record, all);
    }
    record.Put();
  }

  // What was wanted and what was there, of the entry that was seen last.
  static void AddPositions(Record& record, const std::vector<const Write*>& writes) {
    const auto earlier = [](const Write* a, const Write* b) {
      return a->visible_after && (!b->visible_after || *a->visible_after < *b->visible_after);
    };
    const Write& last = **std::max_element(writes.begin(), writes.end(), earlier);
    const Ordered* version = last.write_id.ordered();
    if (version == nullptr) return;
    record.Position("wanted", *version);
    if (last.at) record.Position("seen", {version->epoch, *last.at});
  }

  std::string store;
  std::string store_kind;
  std::vector<WriteId> ids;
  Moment moment;
  std::string site;
  Origin origin;
  std::shared_ptr<const BarrierObservation> looks;  // of the last barrier in its scope
  std::string barrier;                        // where that was called, where it asked for the same
  std::optional<std::pair<Ordered, Ordered>>
      older;                     // the entry that the value itself is older than, and its own version
  std::optional<Digest> digest;  // of what came
  Octets repeat;
};

std::unique_ptr<FollowedRead> FollowedRead::Begin(const std::shared_ptr<Store>& store,
                                                  const std::shared_ptr<ReadingBlock>& reading, const ScopePtr& scope,
                                                  const Site& site,
                                                  const std::optional<std::vector<std::string>>& keys) noexcept {
  std::unique_ptr<FollowedRead> begun;
  Quietly([&] {
    if (store->mode() != Mode::kDryRun) return;
    counts::Add("reads", "", store->name());
    records::Start();
    Moment moment = Moment::Now();
    if (!IsSampled(moment.span)) return;
    Lineage lineage;
    if (reading && reading->after()) {
      lineage = *reading->after();
    } else if (scope) {
      lineage = scope->Known();
    }
    std::vector<WriteId> ids = lineage.OfStore(store->name());
    if (keys) {
      std::set<std::string> named(keys->begin(), keys->end());
      for (const std::string& key : *keys) named.insert(wire::HashedKey(key));
      const auto unread = [&](const WriteId& id) { return !id.is_position() && named.count(id.key()) == 0; };
      ids.erase(std::remove_if(ids.begin(), ids.end(), unread), ids.end());
    }
    if (ids.empty()) return;
    if (ids.size() > kMostEntries) ids.erase(ids.begin() + kMostEntries, ids.end());
    auto inside = std::make_shared<Inside>();
    inside->store = store->name();
    inside->store_kind = store->kind();
    inside->ids = std::move(ids);
    inside->moment = std::move(moment);
    inside->site = site.ToString();
    inside->origin = Origin::Of(scope.get());
    inside->looks = BarrierObservation::Of(scope);
    begun.reset(new FollowedRead(std::move(inside)));
  });
  return begun;
}

void FollowedRead::Listen() noexcept {
  class Reads final : public Observer {
   public:
    void ReadBegun(const ReadRequest& read, ReadObservers& observers) override {
      if (!read.is_sure) return;
      auto followed = Begin(read.store, read.reading, read.scope, read.site, read.keys);
      if (followed != nullptr) Quietly([&] { observers.push_back(std::move(followed)); });
    }
  };
  static Reads reads;
  AddObserver(reads);
}

FollowedRead::FollowedRead(std::shared_ptr<Inside> inside) : inside_(std::move(inside)) {}

FollowedRead::~FollowedRead() = default;

void FollowedRead::Over(const std::shared_ptr<Server>& server, const Came& came) noexcept {
  Quietly([&] { inside_->Over(server, came); });
}

void FollowedRead::Returned(const ReadReply& reply) noexcept {
  Quietly([&] {
    Came came{reply.value, reply.repeat, {}};
    for (const ReadValue& each : reply.values) {  // the version that an object has is exact
      if (each.version && !each.version->is_position()) came.versions.emplace(each.key, each.version->version());
    }
    Over(reply.server, came);
  });
}

void FollowedRead::Over(const std::shared_ptr<Server>& server) noexcept { Over(server, Came()); }

}  // namespace antipode
