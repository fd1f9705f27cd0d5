// A process that hosts services: `antipode_services SERVICE…`, told what to do as benchmarks/services.md says. It ends
// when its standard input does, so it never outlives the command that started it. `antipode_services courier …` is a
// courier (benchmarks/deliveries.md), `antipode_services adversary` the application that the
// adversary plays (benchmarks/adversary.md).
#include <antipode/antipode.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "adversary.h"
#include "courier.h"
#include "http.h"
#include "services.h"
#include "setup.h"
#include "tracing.h"

namespace {

using services::Site;

const std::map<std::string, void (*)(const Site&)> kServices{{"post-upload", services::BuildPostUpload},
                                                             {"post-storage-a", services::BuildPostStorageA},
                                                             {"post-storage-b", services::BuildPostStorageB},
                                                             {"notifier", services::BuildNotifier},
                                                             {"follower-notify", services::BuildFollowerNotify},
                                                             {"worker", services::BuildWorker}};

void Say(const std::string& line) { std::cout << line + "\n" << std::flush; }

// What threads use until the process ends, whatever goes wrong meanwhile.
struct Process {
  std::map<std::string, services::Door> doors;
  std::optional<services::CurrentSetup> setup;
  std::optional<services::Calls> calls;

  // Hosts the services until standard input ends.
  void Host(const std::vector<std::string>& names) {
    nlohmann::json ports;
    for (const std::string& name : names) {
      if (kServices.count(name) == 0) throw services::Failure("there is no service " + name);
      ports[name] = doors[name].port();
    }
    Say(ports.dump());

    std::string line;
    if (!std::getline(std::cin, line)) return;
    setup.emplace(services::Setup::FromJson(line));
    const bool antipode = setup->get()->antipode;
    services::StartTracing(antipode);
    calls.emplace(antipode);
    for (auto& [name, door] : doors) kServices.at(name)(Site{door, *calls, *setup});
    for (auto& [name, door] : doors) door.Open(antipode);
    Say("ready");
    while (std::getline(std::cin, line)) {
      setup->Redirect(services::Setup::FromJson(line));
      Say("ready");
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  Process process;
  int code = EXIT_SUCCESS;
  try {
    if (argc < 2) throw services::Failure("name the services that this process hosts");
    if (argv[1] == std::string("courier")) {
      services::RunCourier(std::vector<std::string>(argv + 2, argv + argc));
      std::_Exit(code);
    }
    if (argv[1] == std::string("adversary")) {
      services::RunAdversary();
      std::_Exit(code);
    }
    process.Host(std::vector<std::string>(argv + 1, argv + argc));
    antipode::Shutdown();
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n" << std::flush;
    code = EXIT_FAILURE;
  }
  std::_Exit(code);  // with whatever is under way
}
