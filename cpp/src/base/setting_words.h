// The words of the settings: each one's variable, how its text is read, and what it may be (spec CONF).
#ifndef ANTIPODE_SRC_BASE_SETTING_WORDS_H_
#define ANTIPODE_SRC_BASE_SETTING_WORDS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/settings.h"

namespace antipode {

// What is wrong with a value, in a few words on what is wanted; nothing where it is right.
using Complaint = std::optional<std::string>;

// One setting of the process.
struct SettingField {
  std::string name;
  std::string variable;  // empty: only code can set it
  // Reads a variable's text, stripped, into the settings.
  std::function<Complaint(Settings&, std::string_view)> read;
  // Takes the value from code over; nothing where code says nothing of it.
  std::function<bool(Settings&, const SettingWords&)> take;
  // Checks what code gave before it is taken over.
  std::function<Complaint(const SettingWords&)> check;
  // Adds what `from` says to `to`.
  std::function<void(SettingWords& to, const SettingWords& from)> merge;
  // The value in force as a variable would spell it.
  std::function<std::string(const Settings&)> show;
};

// Every setting of the process, in the order in which they are shown.
const std::vector<SettingField>& SettingWordTable();

// One setting of one store; its variable is ANTIPODE_STORE_<NAME>_ and `end`.
struct StoreWord {
  std::string end;
  std::function<Complaint(StoreSettings&, std::string_view)> read;
};

const std::vector<StoreWord>& StoreWordTable();

}  // namespace antipode

#endif  // ANTIPODE_SRC_BASE_SETTING_WORDS_H_
