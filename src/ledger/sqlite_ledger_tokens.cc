// Issued tokens in the SQLite ledger.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ledger/sqlite_ledger.h"
#include "ledger/stored_response.h"

namespace ration {

namespace {

std::int64_t nanos(Wall wall) {
    return wall.time_since_epoch().count();
}

Wall wall(std::int64_t nanos) {
    return Wall(Nanos(nanos));
}

}  // namespace

absl::Status SqliteLedger::perform(const PutToken& put, Wall, LedgerReply&) {
    const IssuedToken& token = *put.token;
    const std::string numbers = pack_numbers(token.numbers);
    statements_.put_token.bind_text(1, token.id)
        .bind_blob(2, {reinterpret_cast<const char*>(token.digest.data()), token.digest.size()})
        .bind_text(3, token.kind)
        .bind_text(4, token.owner_kind)
        .bind_text(5, token.owner)
        .bind_text(6, numbers)
        .bind_text(7, token.name)
        .bind(8, nanos(token.created))
        .bind(9, nanos(token.last_used));
    return statements_.put_token.run();
}

absl::Status SqliteLedger::perform(const DropToken& drop, Wall, LedgerReply& reply) {
    statements_.drop_token.bind_text(1, drop.id);
    const absl::Status status = statements_.drop_token.run();
    reply.found = file_.database.changes() > 0;
    return status;
}

absl::Status SqliteLedger::perform(const NoteUses& note, Wall, LedgerReply&) {
    for (const auto& [id, last] : note.uses) {
        statements_.note_use.bind_text(1, id).bind(2, nanos(last));
        if (absl::Status status = statements_.note_use.run(); !status.ok()) {
            return status;
        }
    }
    return absl::OkStatus();
}

absl::StatusOr<std::vector<IssuedToken>> SqliteLedger::tokens() {
    const std::lock_guard lock(mutex_);
    std::vector<IssuedToken> tokens;
    SqliteStatement& rows = statements_.list_tokens;
    for (absl::StatusOr<bool> row = rows.row(); !row.ok() || *row; row = rows.row()) {
        if (!row.ok()) {
            return row.status();
        }
        IssuedToken token;
        token.id = rows.bytes(0);
        const std::string_view digest = rows.bytes(1);
        std::optional<NumberList> numbers = unpack_numbers(rows.bytes(5));
        if (digest.size() != token.digest.size() || !numbers) {
            rows.reset();
            return absl::DataLossError(
                absl::StrCat(options_.path, ": damaged: the token ", token.id, " is unreadable"));
        }
        std::copy(digest.begin(), digest.end(), token.digest.begin());
        token.kind = rows.bytes(2);
        token.owner_kind = rows.bytes(3);
        token.owner = rows.bytes(4);
        token.numbers = std::move(*numbers);
        token.name = rows.bytes(6);
        token.created = wall(rows.integer(7));
        token.last_used = wall(rows.integer(8));
        tokens.push_back(std::move(token));
    }
    return tokens;
}

}  // namespace ration
