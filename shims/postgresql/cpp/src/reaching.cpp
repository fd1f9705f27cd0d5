// What is found out of the server that a wrapped connection has reached, when it is wrapped and when it is made anew
// (BAR-52).
#include <chrono>
#include <string>

#include "antipode/logs.h"
#include "antipode/shim/shim_tools.h"
#include "binding.h"
#include "probe.h"

namespace antipode::postgresql {
namespace {

constexpr auto kProbe = std::chrono::seconds(1);

constexpr auto kFactsStand = std::chrono::seconds(10);

// What the server allows: asked once a user and server, and again where that was ten seconds ago (SHIM-43).
Facts FactsAt(Store& store, const Target& target) {
  auto& shim = static_cast<PostgresqlShim&>(store.shim());
  const auto user = target.words.find("user");
  const std::string place = (user == target.words.end() ? std::string() : user->second) + "@" + target.address;
  const auto known = shim.FactsOf(place);
  if (known && std::chrono::steady_clock::now() - known->at < kFactsStand) return known->facts;
  Facts facts;
  std::string trouble;
  try {
    facts = Probe(target, kProbe);
  } catch (const UnreachableError& error) {
    trouble = error.words;
  } catch (const RefusedError& error) {
    trouble = error.words;
  }
  if (!facts.reached) {
    logs::Info("AP507", "probe " + store.name() + " " + target.address,
               store.name() + ": " + target.address + " does not answer yet (" + trouble +
                   "); its rights are asked when it does");
    return known ? known->facts : facts;
  }
  shim.KeepFacts(place, facts);
  SayWhatLacks(store.name(), target, facts);
  if (!facts.marks) {
    const std::string words = NoTable(store.name(), facts.user);
    NoteMarks(store.name(), target.address + ": " + words);
    logs::Warn("AP508", "marks " + store.name() + " " + target.address, store.name() + ": " + words);
  }
  return facts;
}

}  // namespace

void Binding::Reach(const Target& target, int descriptor) {
  lead = lead == nullptr ? store->NameServer(options, target, target.address)
                         : store->Reach(lead, options, target, target.address, descriptor);
  server = lead->server();
  const Facts facts = FactsAt(*store, target);
  unsure = UnsureNames(facts.unsure);
  unfit = facts.Unfit(shim().relaxed_durability());
  if (!unfit.empty()) unfit = target.address + " " + unfit;
}

}  // namespace antipode::postgresql
