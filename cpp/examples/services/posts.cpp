#include "posts.h"

#include <utility>
#include <vector>

namespace services {

std::unique_ptr<PostsConnection> ConnectPosts(const Setup& setup, const std::string& server) {
  const auto found = setup.posts.find(server);
  if (found == setup.posts.end()) throw Failure("the setup does not say where the posts' server " + server + " is");
  return setup.post_storage == "redis" ? ConnectRedis(setup, found->second) : ConnectPostgresql(setup, found->second);
}

void RegisterPosts(const Setup& setup) {
  std::vector<std::string> urls;
  for (const auto& [name, url] : setup.replicas()) urls.push_back(url);
  antipode::StoreOptions options(kPosts);
  options.Replicas(urls);
  setup.post_storage == "redis" ? RegisterRedis(options) : RegisterPostgresql(options);
}

}  // namespace services
