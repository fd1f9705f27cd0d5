// Two regions of real servers for a test: antipode-lab (lab/README.md) in a child process, its verbs as functions.
//
//   antipode::lab::Lab lab({"redis"}, {2, {"20ms", "40ms"}});
//   redisConnect(lab.server("redis", "a").host.c_str(), lab.server("redis", "a").port);
//   lab.Partition("redis", "b1");
//   lab.Heal();
//
// The lab ends with the object, and also when the test's process dies: the child then sees the end of its input. What
// fails throws std::runtime_error with the lab's own words. One thread at a time. For tests only; Linux only.
#ifndef ANTIPODE_TESTS_LAB_LAB_H_
#define ANTIPODE_TESTS_LAB_LAB_H_

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace antipode::lab {

using Words = std::vector<std::string>;

// What a lab is started with (lab/README.md).
struct Options {
  int replicas = 1;             // in region B
  Words lags = {"0ms"};         // one way: one for all replicas, or one for each, in order
  nlohmann::json options = {};  // by store: {"redis": {"aof": true}}
};

// One server, as the lab's file described it when it was asked for.
struct Server {
  std::string name;
  std::string region;
  std::string role;    // such as primary, replica, old primary
  std::string host;
  int port = 0;
  std::string url;
  std::string source;  // the server it takes its data from; empty where there is none
  std::string state;   // running, frozen, stopped
};

// The Python that has the lab: ANTIPODE_PYTHON of the environment, else that of the repository, else what PATH finds.
inline std::string Python() {
  if (const char* given = std::getenv("ANTIPODE_PYTHON"); given != nullptr) return given;
#ifdef ANTIPODE_PYTHON
  if (access(ANTIPODE_PYTHON, X_OK) == 0) return ANTIPODE_PYTHON;
#endif
  return "python3";
}

namespace internal {

// Does verbs: a line of JSON a verb on standard input, a line of JSON a result.
inline constexpr const char* kDriver = R"python(
import json, os, sys
from operator import attrgetter
out = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # whatever else prints must not stand between the answers
def say(**message):
    out.write(json.dumps(message) + "\n")
def hear():
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    return json.loads(line)
def call_back(*_):
    say(callback=True)
    if "error" in hear():
        raise RuntimeError("the callback failed")
wanted = hear()
try:
    from antipode_lab import Lab
    with Lab(*wanted.pop("stores"), **wanted) as lab:
        say(result=str(lab.path))
        while True:
            message = hear()
            try:
                named = {n: call_back if v == "<callback>" else v for n, v in message["named"].items()}
                result = attrgetter(message["verb"])(lab[message["store"]])(*message["words"], **named)
                say(result=result if isinstance(result, (str, int, float, bool, list, dict)) else None)
            except Exception as error:
                say(error=f"{type(error).__name__}: {error}")
except Exception as error:
    say(error=f"{type(error).__name__}: {error}")
)python";

// The process that owns a lab and does its verbs, one after another.
class Driver {
 public:
  Driver() {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("lab: no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const std::string python = Python();
    std::string option = "-c";
    std::string script = kDriver;
    char* const arguments[] = {const_cast<char*>(python.c_str()), option.data(), script.data(), nullptr};
    const int failed = posix_spawnp(&pid_, python.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    if (failed != 0) {
      pid_ = -1;
      close(to_);
      close(from_);
      throw std::runtime_error("lab: cannot run " + python);
    }
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() { End(); }

  // What it answers to a message; calls back where it asks for that.
  nlohmann::json Say(const nlohmann::json& message, const std::function<void()>& callback = {}) {
    Send(message);
    nlohmann::json answer = Next(message);
    while (answer.contains("callback")) {
      callback();
      Send(nlohmann::json::object());
      answer = Next(message);
    }
    if (answer.contains("error")) {
      throw std::runtime_error("lab: " + message.dump() + ": " + answer["error"].get<std::string>());
    }
    return answer.at("result");
  }

  // Ends its input, and so the lab.
  void End() {
    if (pid_ < 0) return;
    close(to_);
    char rest[4096];
    while (read(from_, rest, sizeof rest) > 0) continue;
    close(from_);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
  }

 private:
  void Send(const nlohmann::json& message) {
    const std::string line = message.dump() + "\n";
    std::size_t at = 0;
    while (at < line.size()) {
      const ssize_t sent = write(to_, line.data() + at, line.size() - at);
      if (sent <= 0) throw std::runtime_error("lab: its process has ended");
      at += static_cast<std::size_t>(sent);
    }
  }

  nlohmann::json Next(const nlohmann::json& message) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    std::string line;
    while (true) {
      pollfd ready{from_, POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      char octet = 0;
      if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) {
        throw std::runtime_error("lab: " + message.dump() + ": no end within 3 minutes");
      }
      if (read(from_, &octet, 1) != 1) throw std::runtime_error("lab: " + message.dump() + ": its process has ended");
      if (octet == '\n') return nlohmann::json::parse(line);
      line += octet;
    }
  }

  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

}  // namespace internal

class Lab {
 public:
  explicit Lab(const Words& stores, const Options& options = {}) {
    nlohmann::json wanted = {{"stores", stores}, {"replicas", options.replicas}, {"lag", options.lags}};
    if (options.lags.size() == 1) wanted["lag"] = options.lags.front();
    if (!options.options.is_null()) wanted["options"] = options.options;
    path_ = driver_.Say(wanted).get<std::string>();
  }

  // The lab's file of endpoints (lab/README.md, "lab.json"), as it is now.
  nlohmann::json endpoints() const {
    std::ifstream file(path_);
    if (!file) throw std::runtime_error("lab: " + path_ + " is gone");
    return nlohmann::json::parse(file);
  }
  // Its place, for processes that are to find this lab by ANTIPODE_LAB.
  const std::string& path() const { return path_; }

  // One server; throws where the lab has none of that name.
  Server server(const std::string& store, const std::string& name) const {
    const nlohmann::json found = endpoints().at("stores").at(store).at("servers").at(name);
    const nlohmann::json& source = found.at("source");
    return {found.at("name"), found.at("region"), found.at("role"), found.at("host"), found.at("port"), found.at("url"),
            source.is_null() ? std::string() : source.get<std::string>(), found.at("state")};
  }
  // All servers of a store by their names: "a", "b1", "b2".
  std::map<std::string, Server> servers(const std::string& store) const {
    std::map<std::string, Server> all;
    const nlohmann::json found = endpoints().at("stores").at(store).at("servers");
    for (const auto& each : found.items()) all.emplace(each.key(), server(store, each.key()));
    return all;
  }
  // The name of the store's primary as the lab knows it.
  std::string primary(const std::string& store) const {
    for (const auto& [name, each] : servers(store)) {
      if (each.role == "primary") return name;
    }
    throw std::runtime_error("lab: " + store + " has no primary");
  }

  // -- the verbs, as lab/README.md explains them; each returns when it is done

  void Lag(const std::string& store, const std::string& server, const std::string& lag) {
    Do(store, "lag", {server, lag});
  }
  void Partition(const std::string& store, const std::string& server, bool silent = false) {
    Do(store, "partition", {server}, {{"mode", silent ? "silent" : "cut"}});
  }
  void Heal(const std::string& store) { Do(store, "heal"); }
  void Heal(const std::string& store, const std::string& server, bool wait = true) {
    Do(store, "heal", {server}, {{"wait", wait}});
  }
  void Freeze(const std::string& store, const std::string& server) { Do(store, "freeze", {server}); }
  void Thaw(const std::string& store, const std::string& server) { Do(store, "thaw", {server}); }
  void Kill(const std::string& store, const std::string& server) { Do(store, "kill", {server}); }
  // Whatever is on its way is lost or not; with `lose` 0 it arrives first, with more so many writes never do.
  void Promote(const std::string& store, const std::string& server, std::optional<int> lose = std::nullopt) {
    nlohmann::json named = nlohmann::json::object();
    if (lose) named["lose"] = *lose;
    Do(store, "promote", {server}, named);
  }
  // What `lost` writes at the old primary, once nothing leaves it any more, never arrives.
  void PromoteLosing(const std::string& store, const std::string& server, const std::function<void()>& lost) {
    Do(store, "promote", {server}, {{"lose", "<callback>"}}, lost);
  }
  void Repoint(const std::string& store, const std::string& server, const std::string& source, bool wait = true) {
    Do(store, "repoint", {server, source}, {{"wait", wait}});
  }
  // `from`: for Redis rdb, aof or nothing; empty is the store's default.
  void Restart(const std::string& store, const std::string& server, const std::string& from = "", bool crash = false,
               bool wait = true) {
    nlohmann::json named = {{"crash", crash}, {"wait", wait}};
    if (!from.empty()) named["source"] = from;
    Do(store, "restart", {server}, named);
  }
  // Returns when the server has what its source has.
  void WaitCaughtUp(const std::string& store, const std::string& server) { Do(store, "wait_caught_up", {server}); }

  // Any verb of a store in the lab's library, with its words and named arguments; "<callback>" stands for `callback`.
  // Of what the store has, too: "context.toxiproxy.create".
  nlohmann::json Do(const std::string& store, const std::string& verb,
                    const nlohmann::json& words = nlohmann::json::array(),
                    const nlohmann::json& named = nlohmann::json::object(),
                    const std::function<void()>& callback = {}) {
    return driver_.Say({{"store", store}, {"verb", verb}, {"words", words}, {"named", named}}, callback);
  }
  // Ends every server; the destructor does it too.
  void Down() { driver_.End(); }

 private:
  internal::Driver driver_;
  std::string path_;
};

}  // namespace antipode::lab

#endif  // ANTIPODE_TESTS_LAB_LAB_H_
