// Two regions of real servers for a test: antipode-lab (lab/README.md) as a child process, its verbs as functions.
//
//   antipode::lab::Lab lab({"redis"}, {2, {"20ms", "40ms"}});
//   redisConnect(lab.server("redis", "a").host.c_str(), lab.server("redis", "a").port);
//   lab.Partition("redis", "b1");
//   lab.Heal();
//
// The lab ends with the object, and also when the test's process dies: its keeper, a shell that has the other end of a pipe,
// then sees the pipe's end. What fails throws std::runtime_error with the lab's own words. For tests only; Linux only.
#ifndef ANTIPODE_TESTS_LAB_LAB_H_
#define ANTIPODE_TESTS_LAB_LAB_H_

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
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

// What a lab is started with; see `antipode-lab up --help`.
struct Options {
  int replicas = 1;      // in region B
  Words lags = {"0ms"};  // one way: one for all replicas, or one for each, in order
  Words settings = {};   // as `--set` has them: redis.aof=true
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

// The command: ANTIPODE_LAB_COMMAND of the environment, else that of the repository, else what PATH finds.
inline std::string Command() {
  if (const char* given = std::getenv("ANTIPODE_LAB_COMMAND"); given != nullptr) return given;
#ifdef ANTIPODE_LAB_COMMAND
  if (access(ANTIPODE_LAB_COMMAND, X_OK) == 0) return ANTIPODE_LAB_COMMAND;
#endif
  return "antipode-lab";
}

namespace internal {

// A child process with a pipe to its standard input and one from its output and errors.
class Child {
 public:
  explicit Child(const Words& words) {
    int in[2];
    int out[2];
    if (pipe2(in, O_CLOEXEC) != 0) throw std::runtime_error("lab: no pipe");
    if (pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("lab: no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int failed = posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    if (failed != 0) {
      pid_ = -1;
      close(to_);
      close(from_);
      throw std::runtime_error("lab: cannot run " + words[0]);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { Wait(); }

  // What the child says up to a line that begins so, or to its end; whether the line came.
  bool ReadUntil(const std::string& beginning, std::string& said) {
    char octet = 0;
    std::string line;
    while (read(from_, &octet, 1) == 1) {
      said += octet;
      line = octet == '\n' ? std::string() : line + octet;
      if (octet != '\n' && line == beginning) return true;
    }
    return false;
  }

  // Ends the child's input, lets it finish, and gives its exit code.
  int Wait() {
    if (pid_ < 0) return code_;
    close(to_);
    char rest[4096];
    while (read(from_, rest, sizeof rest) > 0) continue;
    close(from_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return code_;
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  int code_ = 0;
};

}  // namespace internal

class Lab {
 public:
  explicit Lab(const Words& stores, const Options& options = {}) : path_(NewFile()), keeper_(Up(stores, options, path_)) {
    std::string said;
    if (!keeper_.ReadUntil("ready in ", said)) throw std::runtime_error("lab: it did not start: " + said);
  }
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  ~Lab() { Down(); }

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
    for (const auto& each : endpoints().at("stores").at(store).at("servers").items()) {
      all.emplace(each.key(), server(store, each.key()));
    }
    return all;
  }

  // -- the verbs, as `antipode-lab --help` explains them; each returns when it is done

  void Lag(const std::string& store, const std::string& server, const std::string& lag) { Do({"lag", store, server, lag}); }
  void Partition(const std::string& store, const std::string& server, bool silent = false) {
    Words words = {"partition", store, server};
    if (silent) words.push_back("--silent");
    Do(words);
  }
  void Heal() { Do({"heal"}); }
  void Heal(const std::string& store, const std::string& server) { Do({"heal", store, server}); }
  void Freeze(const std::string& store, const std::string& server) { Do({"freeze", store, server}); }
  void Thaw(const std::string& store, const std::string& server) { Do({"thaw", store, server}); }
  void Kill(const std::string& store, const std::string& server) { Do({"kill", store, server}); }
  // `lose`: so many writes of the old primary never arrive; none: whatever is on its way is lost or not.
  void Promote(const std::string& store, const std::string& server, std::optional<int> lose = std::nullopt) {
    Words words = {"promote", store, server};
    if (lose) words.insert(words.end(), {"--lose", std::to_string(*lose)});
    Do(words);
  }
  void Repoint(const std::string& store, const std::string& server, const std::string& source) {
    Do({"repoint", store, server, source});
  }
  // `from`: for Redis rdb, aof or nothing; empty is the store's default.
  void Restart(const std::string& store, const std::string& server, const std::string& from = "", bool crash = false) {
    Words words = {"restart", store, server};
    if (!from.empty()) words.insert(words.end(), {"--from", from});
    if (crash) words.push_back("--crash");
    Do(words);
  }
  // Any command of the lab; what it printed.
  std::string Do(Words words) const {
    words.insert(words.begin(), Command());
    words.insert(words.end(), {"--lab", path_});
    internal::Child child(words);
    std::string said;
    child.ReadUntil("\n", said);  // never: reads it all
    if (child.Wait() != 0) throw std::runtime_error("lab: " + words[1] + ": " + said);
    return said;
  }
  // Ends every server; the destructor does it too.
  void Down() { keeper_.Wait(); }

 private:
  static std::string NewFile() {
    const char* folder = std::getenv("TMPDIR");
    std::string name = std::string(folder != nullptr ? folder : "/tmp") + "/antipode-lab-XXXXXX";
    const int file = mkstemp(name.data());
    if (file < 0) throw std::runtime_error("lab: no file for its endpoints");
    close(file);
    unlink(name.c_str());  // the lab writes it; here its name was only made sure of
    return name;
  }

  // `up`, then nothing until our end of the pipe is closed, by us or with our process; then `down`.
  static Words Up(const Words& stores, const Options& options, const std::string& path) {
    static constexpr const char* kKeeper =
        R"(lab=$1; file=$2; shift 2; "$lab" up --json "$file" "$@" </dev/null || exit 1
read -r _; "$lab" down --lab "$file" </dev/null >/dev/null 2>&1; exit 0)";
    Words words = {"sh", "-c", kKeeper, "lab-keeper", Command(), path};
    words.insert(words.end(), stores.begin(), stores.end());
    std::string lags;
    for (const std::string& lag : options.lags) lags += (lags.empty() ? "" : ",") + lag;
    words.insert(words.end(), {"--replicas", std::to_string(options.replicas), "--lag", lags});
    for (const std::string& setting : options.settings) words.insert(words.end(), {"--set", setting});
    return words;
  }

  std::string path_;
  internal::Child keeper_;
};

}  // namespace antipode::lab

#endif  // ANTIPODE_TESTS_LAB_LAB_H_
