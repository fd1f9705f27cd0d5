// What ties one wrapped connection to its store: the options, and how writes and reads are treated.
#ifndef ANTIPODE_POSTGRESQL_SRC_BINDING_H_
#define ANTIPODE_POSTGRESQL_SRC_BINDING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "antipode/logs.h"
#include "antipode/postgresql.h"
#include "antipode/settings.h"
#include "antipode/shim/lead.h"
#include "antipode/store.h"
#include "shim.h"
#include "statements.h"
#include "targets.h"
#include "unsure.h"

namespace antipode::postgresql {

struct Binding {
  Binding(std::shared_ptr<Store> joined, const Options& given)
      : store(std::move(joined)),
        options(given.store),
        async_commits(given.async_commits),
        rests(given.store.rest.value_or("none") == "column") {}

  std::shared_ptr<Store> store;
  std::shared_ptr<Lead> lead;      // of the connection
  std::shared_ptr<Server> server;  // which it has reached
  StoreOptions options;
  AsyncCommits async_commits;
  bool rests;         // whether lineages rest beside rows
  std::string unfit;  // why positions of this client prove nothing; empty where they do

  // The connection has reached this server, by this socket: it joins the store, and is asked for its rights and
  // settings, once a user and server. The one before leaves, unless others lead there (BAR-62).
  void Reach(const Target& target, int descriptor);

  UnsureNames unsure;  // what of the database makes texts unsure that look like reads

  // What a statement may do, by its text and by what its database has (SHIM-43).
  Kind KindOf(std::string_view text) const {
    const Kind kind = Classify(text);
    const Kind found = kind == Kind::kRead && unsure.AreIn(text) ? Kind::kMaybe : kind;
    return found == Kind::kMaybe && DeclaresHeld(text) ? Kind::kWrite : found;
  }

  bool records = true;
  bool waits = false;
  bool notes = false;  // a history is recorded

  // Takes the settings in force, if they have changed, or the store's mode: another wrap may have said another one.
  // Called before every statement.
  void Refresh() {
    const std::uint64_t now = SettingsGeneration();
    const bool is_on = store->mode() != Mode::kOff;
    if (now == generation_ && is_on == records) return;
    generation_ = now;
    records = is_on;
    waits = options.wait_on_read.value_or(false) && records;
    notes = !CurrentSettings()->history.empty();
  }

  PostgresqlShim& shim() const { return static_cast<PostgresqlShim&>(store->shim()); }

  // One line a minute.
  void Say(MessageCode code, const std::string& kind, const std::string& words) const {
    logs::Warn(code, kind + " " + store->name(), words);
  }

 private:
  std::uint64_t generation_ = ~std::uint64_t{0};
};

}  // namespace antipode::postgresql

#endif  // ANTIPODE_POSTGRESQL_SRC_BINDING_H_
