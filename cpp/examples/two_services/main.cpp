// Two services in one program: a front end calls the post storage, whose write comes back with the response; then a
// message goes out, and its consumer knows what it depends on. Exits with 1 where something of that is not so.
#include <antipode/antipode.h>

#include <iostream>
#include <map>
#include <string>

namespace {

using Headers = std::map<std::string, std::string>;

Headers StorePost(const Headers& request) {
  antipode::Scope scope = antipode::ExtractRequest(antipode::HeaderCarrier(request), "10.0.0.7");
  // A shim does this: the write's position, as the store gave it with its reply.
  const auto write = antipode::WriteId::Position("blog-posts", "8371ab90c2d4e6f1", 1042);
  if (write) antipode::Append(*write);
  Headers response;
  scope.InjectResponse(antipode::HeaderCarrier(response));
  return response;
}

antipode::Lineage Consume(const std::string& header) {
  const antipode::Scope scope = antipode::MessageScope(header);
  return scope.lineage();
}

}  // namespace

int main() {
  const antipode::Scope scope;
  Headers request;
  if (const auto error = antipode::InjectRequest(antipode::HeaderCarrier(request), "post-storage:9090")) {
    std::cerr << error->message << "\n";
    return 1;
  }
  antipode::ExtractResponse(antipode::HeaderCarrier(StorePost(request)), "post-storage:9090");
  const auto message = antipode::OutgoingMessage();
  if (!message || !message->has_value()) return 1;
  std::cout << "message carries " << **message << "\n";
  return Consume(**message) == scope.lineage() && scope.lineage().size() == 1 ? 0 : 1;
}
