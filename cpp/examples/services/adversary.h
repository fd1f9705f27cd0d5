// The application that the adversary plays (benchmarks/adversary.md): what a store gives it.
#ifndef ANTIPODE_EXAMPLES_SERVICES_ADVERSARY_H_
#define ANTIPODE_EXAMPLES_SERVICES_ADVERSARY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

namespace services {

// What a client says of a call: by the plain client too, or by Antipode alone.
struct Raised {
  std::string whose;
  std::string words;
};

// The servers of a store, and its name.
struct AdversarySetup {
  std::string store;
  std::string primary;
  std::string replica;
};

// A client, in whatever form its ways take it; it is closed by its end.
class AdversaryClient {
 public:
  AdversaryClient() = default;
  AdversaryClient(const AdversaryClient&) = delete;
  AdversaryClient& operator=(const AdversaryClient&) = delete;
  virtual ~AdversaryClient() = default;
};

// What is done with a client, and a row where it writes or reads one; says what the client gave.
using Way = std::function<std::string(AdversaryClient&, const std::string&)>;
using Ways = std::map<std::string, Way>;

// A store whose clients are played.
class AdversaryStore {
 public:
  AdversaryStore() = default;
  AdversaryStore(const AdversaryStore&) = delete;
  AdversaryStore& operator=(const AdversaryStore&) = delete;
  virtual ~AdversaryStore() = default;

  // A client of the primary; the number chooses how it begins.
  virtual std::unique_ptr<AdversaryClient> Open(int kind, bool plain) = 0;
  // A client of the replica whose reads wait.
  virtual std::unique_ptr<AdversaryClient> Reader() = 0;
  // By their kind: `write`, `act` or `read`.
  virtual const Ways& Of(const std::string& kind) const = 0;
};

std::unique_ptr<AdversaryStore> PostgresqlForAdversary(const AdversarySetup& setup);
std::unique_ptr<AdversaryStore> RedisForAdversary(const AdversarySetup& setup);

// Does what it is told, line by line, until standard input ends.
void RunAdversary();

// A client that is wrapped or plain, both with the same words: what is done with it is written once.
template <class Wrapped, class Plain>
class EitherClient : public AdversaryClient {
 public:
  explicit EitherClient(Wrapped wrapped) : either(std::in_place_index<0>, std::move(wrapped)) {}
  explicit EitherClient(Plain plain) : either(std::in_place_index<1>, std::move(plain)) {}

  // A way that is a generic lambda of the client and the row.
  template <class Use>
  static Way By(Use use) {
    return [use](AdversaryClient& client, const std::string& row) -> std::string {
      return std::visit([&](auto& each) -> std::string { return use(each, row); },
                        static_cast<EitherClient&>(client).either);
    };
  }

  std::variant<Wrapped, Plain> either;
};

}  // namespace services

#endif  // ANTIPODE_EXAMPLES_SERVICES_ADVERSARY_H_
