#include "beside.h"

#include <string_view>

#include "antipode/messages.h"

namespace antipode::postgresql {
namespace {

constexpr std::string_view kColumn = "antipode";
constexpr char kSetLocal[] = "SELECT set_config('antipode.lineage', $1, true)";
constexpr char kSetSession[] = "SELECT set_config('antipode.lineage', $1, false)";
constexpr char kReset[] = "RESET antipode.lineage";

int SendText(PGconn* connection, const char* statement, const std::string& text) {
  const char* const value = text.c_str();
  return PQsendQueryParams(connection, statement, 1, nullptr, &value, nullptr, nullptr, 0);
}

}  // namespace

std::string LineagePlacement::TextOf(const Writing& write) const {
  const bool lineage_out = binding_.options.lineage_out.value_or(true);
  return TextAtRest(write.Beside(lineage_out), lineage_out);
}

Send LineagePlacement::InTransaction(const Writing& write) const {
  return [connection = connection_, text = TextOf(write)] { return SendText(connection, kSetLocal, text); };
}

OwnResult LineagePlacement::Put(const Writing& write) {
  const std::string text = TextOf(write);
  const PGTransactionStatusType status = PQtransactionStatus(connection_);
  const bool within = status == PQTRANS_INTRANS;
  if ((!within && status != PQTRANS_IDLE) || (within && told_ == text)) return nullptr;
  if (SendText(connection_, within ? kSetLocal : kSetSession, text) == 0) {
    return nullptr;  // nor will what is written be sent
  }
  Results answer = AllOf(connection_);
  if (!RefusalOf(answer).empty()) return std::move(answer.back());
  if (within) {
    told_ = text;
  } else {
    in_session_ = true;
  }
  return nullptr;
}

void LineagePlacement::TakeBack() {
  if (!in_session_ || PQstatus(connection_) != CONNECTION_OK || PQtransactionStatus(connection_) != PQTRANS_IDLE) {
    return;
  }
  in_session_ = false;
  Simple(connection_, kReset);
}

std::optional<Lineage> RestingIn(const PGresult* result, const Binding& binding) {
  std::optional<Lineage> found;
  for (int column = 0; column < PQnfields(result); ++column) {
    if (PQfname(result, column) != kColumn) continue;
    if (!found) found.emplace();
    for (int row = 0; row < PQntuples(result); ++row) {
      const std::string_view text(PQgetvalue(result, row, column),
                                  static_cast<std::size_t>(PQgetlength(result, row, column)));
      found = *found | LineageAtRest(text, binding.store->name(), binding.options.lineage_in.value_or(true));
    }
  }
  return found;
}

}  // namespace antipode::postgresql
