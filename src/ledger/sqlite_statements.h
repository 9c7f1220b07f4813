// Every statement of the ledger, prepared once: the whole of its SQL in one place.
#pragma once

#include "absl/status/statusor.h"
#include "ledger/sqlite_database.h"

namespace ration {

struct SqliteStatements {
    SqliteStatement begin, commit, rollback;

    // attempts
    SqliteStatement find_identity;     // ?1 identity -> columns as below
    SqliteStatement find_attempt;      // ?1 id -> columns as below
    SqliteStatement insert_attempt;    // id, state, identity, fingerprint, started, expires, keep,
                                       // places, second_try
    SqliteStatement finish_attempt;    // ?1 id, ?2 expires, ?3 status, ?4 headers, ?5 body
    SqliteStatement change_attempt;    // ?1 id, ?2 state, ?3 second_try, ?4 expires
    SqliteStatement delete_attempt;    // ?1 id
    SqliteStatement expired_attempts;  // ?1 now, ?2 limit -> id, state, places
    SqliteStatement open_attempts;     // -> id, state, identity, started, expires, keep, places

    // counts
    SqliteStatement insert_write;    // key, at, attempt
    SqliteStatement count_writes;    // ?1 key, ?2 from, ?3 to
    SqliteStatement expire_writes;   // ?1 before, ?2 limit
    SqliteStatement add_period;      // key, start, ends
    SqliteStatement period_level;    // key, start
    SqliteStatement expire_periods;  // ?1 before, ?2 limit

    // quotas
    SqliteStatement insert_member, delete_member;  // key, object
    SqliteStatement count_members;                 // key
    SqliteStatement list_members;                  // ?1 key, ?2 limit, ?3 after
    SqliteStatement clear_members;                 // key

    // blocks
    SqliteStatement put_block;   // key, until, level, forget_at
    SqliteStatement lift_block;  // key
    SqliteStatement list_blocks;
    SqliteStatement expire_blocks;  // ?1 now, ?2 limit

    // doubts that an operator has settled
    SqliteStatement insert_settled;  // attempt, written, at
    SqliteStatement find_settled;    // ?1 attempt -> written
    SqliteStatement expire_settled;  // ?1 before, ?2 limit

    SqliteStatement note_granted;  // ?1 the last attempt's number that was given out
    SqliteStatement note_written;  // ?1 now: something that has to reach the disk

    // ?1 how far to count
    SqliteStatement row_count_of_attempts, row_count_of_writes, row_count_of_periods,
        row_count_of_members, row_count_of_blocks;

    // issued tokens
    SqliteStatement put_token;    // the columns of list_tokens
    SqliteStatement drop_token;   // ?1 id
    SqliteStatement note_use;     // ?1 id, ?2 last_used
    SqliteStatement list_tokens;  // -> id, digest, kind, owner_kind, owner, numbers, name, created,
                                  // last_used

    [[nodiscard]] static absl::StatusOr<SqliteStatements> prepare(SqliteDatabase& database);
};

// Columns of find_identity and find_attempt.
struct AttemptColumn {
    enum : int {
        id,
        state,
        fingerprint,
        started,
        expires,
        keep,
        places,
        second_try,
        status,
        headers,
        body
    };
};

}  // namespace ration
