#include <cstdlib>
#include <utility>

#include "antipode/redis.h"
#include "inside.h"

namespace antipode::redis {
namespace {

// A formatted command, freed with this object; a negative size where hiredis could not format it.
class FormattedCommand {
 public:
  FormattedCommand(const char* format, va_list arguments) { size_ = redisvFormatCommand(&text_, format, arguments); }
  FormattedCommand(int argc, const char** argv, const std::size_t* argvlen) {
    size_ = redisFormatCommandArgv(&text_, argc, argv, argvlen);
  }
  FormattedCommand(const FormattedCommand&) = delete;
  FormattedCommand& operator=(const FormattedCommand&) = delete;
  ~FormattedCommand() {
    if (size_ >= 0) redisFreeCommand(text_);
  }

  bool ok() const { return size_ >= 0; }
  std::string_view text() const { return {text_, static_cast<std::size_t>(size_)}; }

 private:
  char* text_ = nullptr;
  int size_ = -1;
};

}  // namespace

Connection::Connection(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
Connection::Connection(Connection&& other) noexcept = default;
Connection& Connection::operator=(Connection&& other) noexcept = default;
Connection::~Connection() = default;

Reply Connection::Command(Format format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Reply reply = CommandV(format, arguments);
  va_end(arguments);
  return reply;
}

Reply Connection::CommandV(Format format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const FormattedCommand command(format.text, arguments);
  Reply reply;
  if (command.ok()) {
    reply = inside_->Command(command.text(), format.site);
  } else {
    redisvAppendCommand(context(), format.text, again);  // says in the context what is wrong with it
  }
  va_end(again);
  return reply;
}

Reply Connection::CommandArgv(int argc, const char** argv, const std::size_t* argvlen, Site site) {
  const FormattedCommand command(argc, argv, argvlen);
  if (command.ok()) return inside_->Command(command.text(), site);
  redisAppendCommandArgv(context(), argc, argv, argvlen);
  return {};
}

int Connection::Append(Format format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int done = AppendV(format, arguments);
  va_end(arguments);
  return done;
}

int Connection::AppendV(Format format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const FormattedCommand command(format.text, arguments);
  const int done =
      command.ok() ? inside_->Append(command.text(), format.site) : redisvAppendCommand(context(), format.text, again);
  va_end(again);
  return done;
}

int Connection::AppendArgv(int argc, const char** argv, const std::size_t* argvlen, Site site) {
  const FormattedCommand command(argc, argv, argvlen);
  return command.ok() ? inside_->Append(command.text(), site) : redisAppendCommandArgv(context(), argc, argv, argvlen);
}

const Error* Connection::refused() const { return inside_->refused(); }

int Connection::GetReply(Reply* reply) { return inside_->GetReply(reply); }

int Connection::Reconnect() { return inside_->Reconnect(); }

int Connection::SetTimeout(const timeval& timeout) { return redisSetTimeout(context(), timeout); }

int Connection::err() const { return context()->err; }

const char* Connection::errstr() const { return context()->errstr; }

redisContext* Connection::context() const { return inside_->context(); }

const std::shared_ptr<Store>& Connection::store() const { return inside_->store(); }

}  // namespace antipode::redis
