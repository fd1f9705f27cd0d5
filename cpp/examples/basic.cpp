// The smallest thing that Antipode does, on the store that is built in: no server, no configuration.
//
//     cmake -S cpp/examples -B build/examples && cmake --build build/examples && build/examples/basic
//
// prints
//
//     without a barrier: nothing
//     with a barrier:    Hello
//     what it proved:    blog-posts visible
//     too little time:   blog-posts timed_out
#include <antipode/antipode.h>
#include <antipode/memory.h>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

namespace {

std::string Shown(const antipode::MemoryReply& reply) { return reply.value.value_or("nothing"); }

void Print(const std::string& words, const antipode::BarrierResult& result) {
  std::cout << words;
  for (const auto& [name, store] : result.stores()) std::cout << " " << name << " " << ToString(store.verdict);
  std::cout << "\n";
}

}  // namespace

int main() {
  // A store in two regions. What is written in a arrives in b half a second later.
  antipode::MemoryStore posts("blog-posts", {"a", "b"}, 500ms);
  antipode::MemoryClient posts_a = posts.Client("a");
  antipode::MemoryClient posts_b = posts.Client("b");

  std::string message;
  {
    const antipode::Scope scope;                              // ExtractRequest opens one for each request
    if (!posts_a.Set("post:42", "Hello").ok()) return 1;      // the write joins the request's lineage
    message = *antipode::Serialize();  // the lineage as text; shims of queues carry it along by themselves
  }

  const antipode::Scope scope = antipode::MessageScope(message);  // somebody in region b was told
  std::cout << "without a barrier: " << Shown(posts_b.Get("post:42")) << "\n";

  // Waits for post:42 here, or says why not.
  const antipode::BarrierResult result = antipode::Barrier(antipode::BarrierOptions().Timeout(5s));
  if (const antipode::Error* error = result.error()) {
    std::cerr << error->message << "\n";
    return 1;
  }
  std::cout << "with a barrier:    " << Shown(posts_b.Get("post:42")) << "\n";
  Print("what it proved:   ", result);

  if (!posts_a.Set("post:43", "Again").ok()) return 1;
  // By default the result has an error then: kTimedOut.
  Print("too little time:  ",
        antipode::Barrier(antipode::BarrierOptions().Timeout(10ms).OnTimeout(antipode::Policy::kProceed)));
}
