// post-upload: what users call. It stores the post, then has the followers notified.
#include <nlohmann/json.hpp>

#include "services.h"
#include "tracing.h"

namespace services {

void BuildPostUpload(const Site& site) {
  site.door.Post("/upload", [site](const httplib::Request& request, httplib::Response& response) {
    const auto setup = site.setup.get();
    const Said stored =
        site.calls.Post(setup->address("post-storage-a"), "/posts", request.body, "application/octet-stream", 201);
    auto post = nlohmann::json::parse(stored.body);
    const nlohmann::json notification{{"post", post.at("id")}, {"user", "alice"}};
    site.calls.Post(setup->address("notifier"), "/notifications", notification.dump(), "application/json", 202);
    post["trace"] = TraceId();
    response.status = 201;
    response.set_content(post.dump(), kJson);
  });
}

}  // namespace services
