// Random lineages and texts for properties; few names, so that they meet.
#ifndef ANTIPODE_TESTS_GENERATORS_H_
#define ANTIPODE_TESTS_GENERATORS_H_

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "antipode/lineage.h"

namespace antipode::testing {

inline rc::Gen<std::string> Names() { return rc::gen::element<std::string>("a", "a-b", "b", "\xC3\xA9", "x.y", "_"); }

inline rc::Gen<std::uint64_t> Counters() {
  return rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 6),
                        rc::gen::element<std::uint64_t>(UINT64_MAX, UINT64_MAX - 1, std::uint64_t{1} << 63));
}

inline rc::Gen<WriteId> WriteIds() {
  return rc::gen::exec([] {
    const std::string store = *Names();
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        return *WriteId::Position(store, *Names(), *Counters());
      case 1:
        return *WriteId::Make(store, *Names(), Opaque{*Names()});
      default:
        return *WriteId::Make(store, *Names(), Ordered{*rc::gen::element<std::string>("", "a", "b"), *Counters()});
    }
  });
}

inline rc::Gen<std::vector<WriteId>> IdLists() { return rc::gen::container<std::vector<WriteId>>(WriteIds()); }

inline rc::Gen<Lineage> Lineages() {
  return rc::gen::exec([] {
    Lineage lineage(*IdLists());
    const std::vector<std::string> incomplete = *rc::gen::container<std::vector<std::string>>(Names());
    if (!incomplete.empty()) lineage = lineage.MarkedIncomplete(incomplete);
    if (*rc::gen::inRange(0, 8) == 0) lineage = lineage.MarkedIncomplete();
    if (*rc::gen::inRange(0, 4) == 0) {
      lineage |= *Lineage::Deserialize(*rc::gen::element<std::string>("1~_.x", "1~_.x.a~_.y"));
    }
    return lineage;
  });
}

// Texts that are nearly lineages: made of what lineages are made of.
inline rc::Gen<std::string> NearlyTexts() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                          "1", "~", ".", "_", "_.i", "_.h", "a", "e", "5", "0", "_2E", "_41", "_2e", "..", "~s..e.",
                          " ", "18446744073709551615", "18446744073709551616", "%", ",", ";")),
                      [](const std::vector<std::string>& parts) {
                        std::string text = "1";
                        for (const std::string& part : parts) text += part;
                        return text;
                      });
}

}  // namespace antipode::testing

namespace rc {
template <>
struct Arbitrary<antipode::Lineage> {
  static Gen<antipode::Lineage> arbitrary() { return antipode::testing::Lineages(); }
};
template <>
struct Arbitrary<antipode::WriteId> {
  static Gen<antipode::WriteId> arbitrary() { return antipode::testing::WriteIds(); }
};
}  // namespace rc

#endif  // ANTIPODE_TESTS_GENERATORS_H_
