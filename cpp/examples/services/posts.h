// The posts' store, by its plain client or by Antipode's shim round it.
#ifndef ANTIPODE_EXAMPLES_SERVICES_POSTS_H_
#define ANTIPODE_EXAMPLES_SERVICES_POSTS_H_

#include <memory>
#include <optional>
#include <string>

#include "antipode/store.h"
#include "setup.h"

namespace services {

// One connection to one of the store's servers, for one thread at a time. What fails throws; the connection is of no
// use then.
class PostsConnection {
 public:
  virtual ~PostsConnection() = default;
  virtual void Write(const std::string& key, const std::string& body) = 0;
  // Nothing where there is no such post.
  virtual std::optional<std::string> Read(const std::string& key) = 0;
};

// A connection to a server (`a`, `b1`…) of the store that the setup names.
std::unique_ptr<PostsConnection> ConnectPosts(const Setup& setup, const std::string& server);

// Tells Antipode where a service that never reads posts shall wait for them.
void RegisterPosts(const Setup& setup);

// Of each store

std::unique_ptr<PostsConnection> ConnectRedis(const Setup& setup, const std::string& url);
void RegisterRedis(const antipode::StoreOptions& options);
std::unique_ptr<PostsConnection> ConnectPostgresql(const Setup& setup, const std::string& url);
void RegisterPostgresql(const antipode::StoreOptions& options);

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_POSTS_H_
