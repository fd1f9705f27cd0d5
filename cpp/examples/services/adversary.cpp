// The application that the adversary plays: its scopes, barriers and clients, told line by line.
#include "adversary.h"

#include <antipode/antipode.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "setup.h"

namespace services {
namespace {

using Json = nlohmann::json;

std::mutex saying;

void Say(const Json& told, Json answer) {
  answer["id"] = told.at("id");
  const std::string line = answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(saying);
  std::cout << line << std::flush;
}

Json Judged(const antipode::BarrierResult& result) {
  bool unproven = false;
  for (const auto& [name, store] : result.stores()) unproven |= store.verdict == antipode::Verdict::kUnproven;
  return {{"satisfied", result.satisfied()},
          {"complete", result.complete()},
          {"unproven", unproven},
          {"words", result.ToString()}};
}

antipode::BarrierOptions Looking(std::chrono::milliseconds timeout) {
  return antipode::BarrierOptions()
      .Timeout(timeout)
      .OnTimeout(antipode::Policy::kProceed)
      .OnUnproven(antipode::Policy::kProceed);
}

std::chrono::milliseconds TimeoutOf(const Json& told) { return std::chrono::milliseconds(told.at("timeout_ms")); }

antipode::Lineage LineageOf(const Json& told) {
  auto lineage = antipode::Deserialize(told.at("text").get<std::string>());
  if (!lineage) throw Failure(lineage.error().message);
  return *std::move(lineage);
}

Json Called(const std::function<std::string()>& call) {
  try {
    return {{"gave", call()}};
  } catch (const Raised& raised) {
    return {{"raised", raised.words}, {"whose", raised.whose}};
  }
}

class Application {
 public:
  explicit Application(const Json& setup) {
    const AdversarySetup servers{setup.at("store"), setup.at("primary"), setup.at("replica")};
    store_ = setup.at("kind") == "postgresql" ? PostgresqlForAdversary(servers) : RedisForAdversary(servers);
  }

  Json AllWays() const { return {{"writes", Names("write")}, {"acts", Names("act")}, {"reads", Names("read")}}; }

  static Json Judge(const Json& told) { return Judged(antipode::Barrier(LineageOf(told), Looking(TimeoutOf(told)))); }

  Json Take(const Json& told) {
    const std::string what = told.at("do");
    const int number = told.value("scope", 0);
    const int client = told.value("client", 0);
    if (what == "configure") {
      antipode::SettingWords words;
      words.timeout = TimeoutOf(told);
      if (const auto set = antipode::Configure(words); !set) throw Failure(set.error().message);
    } else if (what == "enter") {
      scopes_[number] = std::make_shared<antipode::LineageScope>(LineageOf(told));
    } else if (what == "end") {
      scopes_.at(number)->Stop();
      scopes_.erase(number);
    } else if (what == "leave") {
      const antipode::Activation current(scopes_.at(number));
      const auto text = antipode::Serialize();
      if (!text) throw Failure(text.error().message);
      return {{"text", *text}};
    } else if (what == "look") {
      const antipode::Activation current(scopes_.at(number));
      return Judged(antipode::Barrier(Looking({})));
    } else if (what == "open") {
      clients_[client] = store_->Open(told.at("kind"), told.at("plain"));
    } else if (what == "reader") {
      clients_[client] = store_->Reader();
    } else if (what == "close") {
      clients_.erase(client);
      return {{"gave", ""}};
    } else {
      const antipode::Activation current(scopes_.at(number));
      const Way& way = store_->Of(what).at(told.at("way"));
      return Called([&] { return way(*clients_.at(client), told.at("row")); });
    }
    return Json::object();
  }

 private:
  Json Names(const std::string& kind) const {
    Json names = Json::array();
    for (const auto& [name, way] : store_->Of(kind)) names.push_back(name);
    return names;
  }

  std::unique_ptr<AdversaryStore> store_;
  std::map<int, antipode::ScopePtr> scopes_;
  std::map<int, std::unique_ptr<AdversaryClient>> clients_;
};

template <class Work>
void Answer(const Json& told, Work work) {
  try {
    Say(told, work());
  } catch (const std::exception& error) {
    Say(told, {{"failed", error.what()}});
  }
}

}  // namespace

void RunAdversary() {
  std::string line;
  if (!std::getline(std::cin, line)) return;
  const Json setup = Json::parse(line);
  Application application(setup);
  Say(setup, application.AllWays());
  while (std::getline(std::cin, line)) {
    const Json told = Json::parse(line);
    if (told.at("do") == "judge") {
      std::thread([told] { Answer(told, [&] { return Application::Judge(told); }); }).detach();
    } else {
      Answer(told, [&] { return application.Take(told); });
    }
  }
}

}  // namespace services
