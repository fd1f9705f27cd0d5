// Runs the contract's vectors (spec/vectors/README.md), and makes lineages of their JSON.
#ifndef ANTIPODE_TESTS_VECTORS_H_
#define ANTIPODE_TESTS_VECTORS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/lineage.h"
#include "antipode/result.h"
#include "antipode/write_id.h"

namespace antipode::testing {

using Json = nlohmann::json;

// Does for each case of this kind what the test says; a failure names file and id. Fails on a file without cases.
void RunVectors(const std::string& kind, const std::function<void(const Json& vector)>& test);

// The cases of this kind, for a test a case.
std::vector<Json> CasesOf(const std::string& kind);

// The kinds of all vectors that there are.
std::vector<std::string> KindsOfVectors();

// The octets of a field: its text, or what stands under `<name>_hex`.
std::string OctetsOf(const Json& object, const std::string& name);
std::string FromHex(std::string_view hex);
std::string ToHex(std::string_view octets);

Result<WriteId> EntryOf(const Json& entry);
WriteId GoodEntryOf(const Json& entry);
Result<Lineage> LineageOf(const Json& lineage);

// Reads a text that must be a lineage.
Lineage Read(std::string_view text);

// Reads, opens every section, and writes canonically.
std::string Canonical(const Lineage& lineage);
std::string Canonical(std::string_view text);

// The same, however long it is.
std::string CanonicalWhole(const Lineage& lineage);

}  // namespace antipode::testing

#endif  // ANTIPODE_TESTS_VECTORS_H_
