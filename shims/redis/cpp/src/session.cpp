#include "session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "info.h"
#include "marks.h"
#include "socket.h"

namespace antipode::redis {
namespace {

// A look is repeated so often where the history changed between two questions, or a push came.
constexpr int kAgain = 3;

Failure OutOfReach(std::string words) { return {false, std::move(words)}; }
Failure ByServer(const Value& error) { return {true, error.text}; }

// Errors that say of the marks that they cannot be read, and nothing against the rest of the answer.
bool IsUnreadable(const Value& error) { return error.Code() == "NOPERM" || error.Code() == "WRONGTYPE"; }

std::string NewName() {
  static std::atomic<std::uint64_t> number{0};
  return "connection:" + std::to_string(++number);
}

}  // namespace

SessionReply<std::shared_ptr<Session>> Session::Open(const Target& target, Timeout timeout) {
  std::string words;
  const int connected = ConnectSocket(target, Clock::now() + timeout, words);
  if (connected < 0) return OutOfReach(words);
  const std::shared_ptr<Session> session(new Session(connected, timeout));
  if (auto greeted = session->Greet(target); !greeted.ok()) return greeted.failure();
  return session;
}

Session::~Session() { close(socket_); }

void Session::Interrupt() noexcept { shutdown(socket_, SHUT_RDWR); }

SessionReply<bool> Session::Greet(const Target& target) {
  std::vector<std::string_view> hello = {"HELLO", "3"};
  const std::string_view user = target.user.empty() ? "default" : std::string_view(target.user);
  if (!target.password.empty()) hello.insert(hello.end(), {"AUTH", user, target.password});
  auto greeted = Ask({Pack(hello)});
  if (!greeted.ok()) return greeted.failure();
  const Value& first = greeted->front();
  resp3_ = !first.IsError();
  if (!resp3_) {
    // A server before 6.0, or a proxy, which knows no HELLO; any other refusal is one of the credentials.
    const bool knows_none =
        first.text.find("HELLO") != std::string::npos || first.text.find("hello") != std::string::npos;
    if (!knows_none || first.Code() == "NOAUTH") return ByServer(first);
    if (!target.password.empty()) {
      std::vector<std::string_view> words = {"AUTH"};
      if (!target.user.empty()) words.push_back(target.user);
      words.push_back(target.password);
      if (auto allowed = Command(words); !allowed.ok()) return allowed.failure();
    }
  }
  for (std::size_t place = 0; place + 1 < first.items.size(); place += 2) {
    if (first.items[place].text == "mode") cluster_ = first.items[place + 1].text == "cluster";
    if (first.items[place].text == "version") version_ = first.items[place + 1].text;
  }
  if (target.database != 0) {
    if (auto chosen = Command({"SELECT", std::to_string(target.database)}); !chosen.ok()) return chosen.failure();
  }
  auto life = Ask({Pack({"INFO", "server"})});
  if (!life.ok()) return life.failure();
  const Value& said = life->front();
  if (said.Code() == "NOAUTH") return ByServer(said);
  // Unknown: no other connection is the same.
  run_id_ = said.IsText() ? std::string(WordOf(said.text, "run_id")) : NewName();
  if (version_.empty() && said.IsText()) version_ = WordOf(said.text, "redis_version");
  return true;
}

// -- questions

SessionReply<bool> Session::Send(std::string_view data, Clock::time_point deadline) {
  while (!data.empty()) {
    const ssize_t sent = send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!WaitSocket(socket_, true, deadline)) return OutOfReach("it takes nothing within the time");
    } else if (errno != EINTR) {
      return OutOfReach(WordsOf(errno));
    }
  }
  return true;
}

SessionReply<bool> Session::ReadSome() {
  char data[65536];
  const ssize_t size = recv(socket_, data, sizeof data, 0);
  if (size > 0) {
    reader_.Feed(std::string_view(data, static_cast<std::size_t>(size)));
    return true;
  }
  if (size == 0) return OutOfReach("the server closed the connection");
  if (errno == EAGAIN || errno == EINTR) return false;
  return OutOfReach(WordsOf(errno));
}

SessionReply<bool> Session::Receive(Clock::time_point deadline) {
  if (!WaitSocket(socket_, false, deadline)) {
    return OutOfReach("no answer within " +
                      std::to_string(std::chrono::ceil<std::chrono::milliseconds>(timeout_).count()) + " ms");
  }
  return ReadSome();
}

SessionReply<std::vector<Value>> Session::Ask(const std::vector<std::string>& commands) {
  const auto deadline = Clock::now() + timeout_;
  std::string data;
  for (const std::string& each : commands) data += each;
  if (auto sent = Send(data, deadline); !sent.ok()) return sent.failure();
  std::vector<Value> replies;
  while (replies.size() < commands.size()) {
    std::optional<Value> message = reader_.Take();
    if (!message) {
      if (!reader_.broken().empty()) return OutOfReach(reader_.broken());
      if (auto received = Receive(deadline); !received.ok()) return received.failure();
    } else if (message->kind == Value::Kind::kPush) {
      Note(*message);
    } else {
      replies.push_back(std::move(*message));
    }
  }
  return replies;
}

SessionReply<Value> Session::Command(const std::vector<std::string_view>& words) {
  auto replies = Ask({Pack(words)});
  if (!replies.ok()) return replies.failure();
  if (replies->front().IsError()) return ByServer(replies->front());
  return std::move(replies->front());
}

SessionReply<ServerState> Session::Look(const std::vector<std::string>& epochs, const std::string& key) {
  SessionReply<ServerState> seen = OutOfReach("");
  for (int times = 0; times < kAgain; ++times) {
    seen = LookOnce(epochs, key);
    if (!seen.ok()) return seen;
    const std::string& history = seen->replication.epoch;
    const bool own =
        std::all_of(epochs.begin(), epochs.end(), [&](const std::string& epoch) { return epoch == history; });
    const bool steady = own || history == epoch_;
    epoch_ = history;
    changed_ = false;  // what was pushed before the answer, the answer knows
    Drain();
    if (steady && !changed_) break;
  }
  return seen;
}

SessionReply<ServerState> Session::LookOnce(const std::vector<std::string>& epochs, const std::string& key) {
  std::vector<std::string> fields = {epoch_.empty() ? "-" : epoch_};
  for (const std::string& epoch : epochs) {
    if (epoch != epoch_) fields.push_back(epoch);
  }
  if (fields.size() == 1) {
    auto replies = Ask({std::string(kQuestion)});
    if (!replies.ok()) return replies.failure();
    const Value& reply = replies->front();
    if (reply.IsError()) return ByServer(reply);
    auto now = ParseReplication(reply.text);
    if (!now) return Failure{true, "INFO replication answered something else"};
    // INFO is answered while other data are being loaded, and then still names the former parent.
    now->before.clear();
    now->before_end = 0;
    return ServerState{*now, {}, true, {}};
  }
  std::vector<std::string_view> words = {"HMGET", key};
  words.insert(words.end(), fields.begin(), fields.end());
  auto replies = Ask({Pack({"MULTI"}), std::string(kQuestion), Pack(words), Pack({"EXEC"})});
  if (!replies.ok()) return replies.failure();
  const Value& asked = (*replies)[1];
  const Value& whole = (*replies)[3];
  if (asked.IsError()) return ByServer(asked);
  Value refused = (*replies)[2];
  if (whole.IsArray() && whole.items.size() == 2) {
    const Value& info = whole.items[0];
    const Value& values = whole.items[1];
    if (info.IsError()) return ByServer(info);
    if (values.IsArray() && values.items.size() == fields.size()) {
      const auto now = ParseReplication(info.text);
      if (!now) return Failure{true, "INFO replication answered something else"};
      ServerState seen{*now, {}, true, {}};
      for (std::size_t place = 0; place < fields.size(); ++place) {
        if (const auto at = PositionOfMark(values.items[place].text); at) seen.marks.emplace(fields[place], *at);
      }
      return seen;
    }
    refused = values;
  }
  if (!refused.IsError()) return whole.IsError() ? ByServer(whole) : OutOfReach("EXEC answered something else");
  // LOADING: its data are being replaced, and what it says of its history is of before.
  if (!IsUnreadable(refused)) return ByServer(refused);
  return LookWithoutMarks(refused.text);
}

SessionReply<ServerState> Session::LookWithoutMarks(const std::string& refused) {
  auto replies = Ask({Pack({"MULTI"}), std::string(kQuestion), Pack({"INFO", "persistence"}), Pack({"EXEC"})});
  if (!replies.ok()) return replies.failure();
  const Value& whole = replies->back();
  if (whole.IsError()) return ByServer(whole);
  if (whole.items.size() != 2) return OutOfReach("EXEC answered something else");
  for (const Value& each : whole.items) {
    if (each.IsError()) return ByServer(each);
  }
  if (WordOf(whole.items[1].text, "loading") == "1") return Failure{true, "LOADING its data are being replaced"};
  const auto now = ParseReplication(whole.items[0].text);
  if (!now) return Failure{true, "INFO replication answered something else"};
  return ServerState{*now, {}, false, "its marks cannot be read (" + refused + ")"};
}

// -- pushes

SessionReply<bool> Session::Track() {
  if (!resp3_) return Failure{true, "NOPROTO the server does not speak RESP3"};
  if (auto tracked = Command({"CLIENT", "TRACKING", "ON", "BCAST"}); !tracked.ok()) return tracked.failure();
  return true;
}

SessionReply<bool> Session::Pump() {
  while (true) {
    auto read = ReadSome();
    if (!read.ok()) return read.failure();
    if (!*read) break;
  }
  Drain();
  if (!reader_.broken().empty()) return OutOfReach(reader_.broken());
  return std::exchange(changed_, false);
}

void Session::Drain() {
  while (const std::optional<Value> message = reader_.Take()) {
    if (message->kind == Value::Kind::kPush) Note(*message);
  }
}

void Session::Note(const Value& push) {
  if (push.items.empty() || push.items[0].text != "invalidate") return;
  changed_ = true;
  if (push.items.size() > 1 && push.items[1].kind == Value::Kind::kNull && on_reset_) on_reset_();
}

}  // namespace antipode::redis
