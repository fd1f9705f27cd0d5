// notifier: sends a notification to region B.
#include <memory>

#include "pool.h"
#include "queue.h"
#include "services.h"
#include "tracing.h"

namespace services {

void BuildNotifier(const Site& site) {
  const auto publishers =
      std::make_shared<Pool<Publisher>>([setup = site.setup.get()] { return ConnectPublisher(*setup); });
  site.door.Post("/notifications", [site, publishers](const httplib::Request& request, httplib::Response& response) {
    const auto setup = site.setup.get();
    if (setup->notifier == "http") {
      site.calls.Post(setup->address("follower-notify"), "/notifications", request.body, "application/json", 202);
    } else {
      MessageHeaders headers;
      antipode::HeaderCarrier leaves(headers);
      InjectContext(leaves);
      publishers->With([&](Publisher& publisher) {
        publisher.Publish(setup->exchange, headers, request.body);
        return true;
      });
    }
    response.status = 202;
    response.set_content("{}", kJson);
  });
}

}  // namespace services
