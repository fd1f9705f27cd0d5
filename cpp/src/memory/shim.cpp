#include "memory/shim.h"

#include <algorithm>
#include <utility>

#include "memory/watch.h"

namespace antipode {

namespace {

template <class Timed>
ShimType TypeOf(bool monkey) {
  return monkey ? ShimType::Of<memory::Monkey<Timed>>("memory") : ShimType::Of<Timed>("memory");
}

}  // namespace

ShimType MemoryShim(Versions versions, bool monkey) {
  switch (versions) {
    case Versions::kPosition:
      return TypeOf<memory::PositionShim>(monkey);
    case Versions::kObject:
      return TypeOf<memory::ObjectShim>(monkey);
    case Versions::kOpaque:
      break;
  }
  return TypeOf<memory::OpaqueShim>(monkey);
}

namespace memory {
namespace {

const Target& TargetOf(const Server& server) { return *std::any_cast<Target>(&server.target()); }

std::string Refused(const Target& target) {
  return target.log->name() + ": the server in " + target.node->region + " refuses connections";
}

}  // namespace

Answers AnyShim::Visible(Span<const WriteId> ids, Server& server) {
  const Target& target = TargetOf(server);
  std::vector<Visibility> answers;
  const bool up = target.log->Looking(*target.node, [&](const Node& node) {
    Proved(node, server);
    for (const WriteId& write_id : ids) answers.push_back(Judge(node, write_id));
  });
  if (!up) return Answers::Unreachable(Refused(target));
  return answers;
}

Answers AnyShim::Wait(Span<const WriteId> ids, Server& server, std::chrono::nanoseconds /*timeout*/) {
  const Target& target = TargetOf(server);
  if (server.Awaited()) {
    for (const WriteId& write_id : ids) {
      target.log->Bring(*target.node,
                        [&](const Node& node) { return Judge(node, write_id).verdict != Verdict::kNotYet; });
    }
  }
  return Visible(ids, server);
}

Result<std::unique_ptr<Watch>> AnyShim::OpenWatch(Server& server, std::function<void()> on_change) {
  const Target& target = TargetOf(server);
  auto watch = std::make_unique<NodeWatch>(*target.log, *target.node, server, std::move(on_change));
  if (!target.log->Watch(*target.node, *watch)) return Error{ErrorCode::kUnfitStore, "AP204", Refused(target)};
  return std::unique_ptr<Watch>(std::move(watch));
}

std::string AnyShim::Address(const std::any& target) const {
  const auto& reached = *std::any_cast<Target>(&target);
  return "memory://" + reached.log->name() + "/" + reached.node->region;
}

void AnyShim::Proved(const Node& /*node*/, Server& /*server*/) const {}

Capabilities PositionShim::capabilities() const {
  return Capabilities::Positions().Push(true).Tombstones(true).RestsIn({Rest::kField}).MarkedBy(Marks::kInBand);
}

void PositionShim::Proved(const Node& node, Server& server) const {
  Ends proved = node.marks;
  proved[node.epoch] = node.counter;
  for (const auto& [epoch, end] : node.ends) {
    std::uint64_t& known = proved[epoch];
    known = std::max(known, end);
  }
  server.Applied(node.instance, node.epoch, proved);
}

Visibility PositionShim::Judge(const Node& node, const WriteId& write_id) const {
  const Ordered* version = write_id.ordered();
  if (version == nullptr || !write_id.is_position()) return Visibility::Unproven("this store gives positions only");
  return JudgePosition(version->epoch, version->counter, {node.epoch, node.counter, &node.marks, &node.ends});
}

Capabilities ObjectShim::capabilities() const {
  return Capabilities::Objects().Push(true).Tombstones(true).RestsIn({Rest::kField});
}

Visibility ObjectShim::Judge(const Node& node, const WriteId& write_id) const {
  const Ordered* wanted = write_id.ordered();
  if (write_id.is_position() || wanted == nullptr || !wanted->epoch.empty()) {
    return Visibility::Unproven("this store gives versions of objects only");
  }
  const Cell* cell = node.Find(write_id.key());
  if (cell == nullptr) return Visibility::NotYet("there is no such object");
  const std::uint64_t there = std::get<Ordered>(cell->version).counter;
  if (there >= wanted->counter) return Visibility::Visible();
  return Visibility::NotYet("it has version " + std::to_string(there) + ", wanted " + std::to_string(wanted->counter));
}

Capabilities OpaqueShim::capabilities() const { return Capabilities::Opaques().Push(true).RestsIn({Rest::kField}); }

Visibility OpaqueShim::Judge(const Node& node, const WriteId& write_id) const {
  const Opaque* wanted = write_id.opaque();
  if (wanted == nullptr) return Visibility::Unproven("this store gives versions without order only");
  if (wanted->mark.rfind("deleted-", 0) == 0) {
    return Visibility::Unproven("a delete leaves nothing behind there that could be seen");
  }
  const Cell* cell = node.Find(write_id.key());
  if (cell == nullptr) return Visibility::NotYet("there is no such object");
  if (cell->version == Version(*wanted)) return Visibility::Visible();
  return Visibility::NotYet("it has another version, earlier or later");
}

}  // namespace memory
}  // namespace antipode
