#include "ledger/sqlite_statements.h"

#include <array>
#include <string_view>
#include <utility>

namespace ration {

namespace {

struct Entry {
    SqliteStatement SqliteStatements::*member;
    std::string_view sql;
};

using S = SqliteStatements;

constexpr std::array entries = {
    Entry{&S::begin, "BEGIN IMMEDIATE"},
    Entry{&S::commit, "COMMIT"},
    Entry{&S::rollback, "ROLLBACK"},
    Entry{&S::find_identity,
          "SELECT id,state,fingerprint,started_at,expires_at,keep_for,places,second_try,status,"
          "headers,body FROM attempts WHERE identity=?1"},
    Entry{&S::find_attempt,
          "SELECT id,state,fingerprint,started_at,expires_at,keep_for,places,second_try,status,"
          "headers,body FROM attempts WHERE id=?1"},
    Entry{&S::insert_attempt,
          "INSERT INTO attempts(id,state,identity,fingerprint,started_at,expires_at,keep_for,"
          "places,second_try) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)"
          " ON CONFLICT(identity) WHERE identity IS NOT NULL DO NOTHING"},
    Entry{&S::finish_attempt,
          "UPDATE attempts SET state=3,expires_at=?2,places='',status=?3,headers=?4,body=?5"
          " WHERE id=?1"},
    Entry{&S::change_attempt,
          "UPDATE attempts SET state=?2,second_try=?3,expires_at=?4 WHERE id=?1"},
    Entry{&S::delete_attempt, "DELETE FROM attempts WHERE id=?1"},
    Entry{&S::expired_attempts,
          "SELECT id,state,places FROM attempts WHERE expires_at<=?1 AND state<>1 LIMIT ?2"},
    Entry{&S::open_attempts,
          "SELECT id,state,identity,started_at,expires_at,keep_for,places FROM attempts"
          " WHERE state<>3"},
    Entry{&S::insert_write, "INSERT INTO writes(key,at,attempt) VALUES(?1,?2,?3)"},
    Entry{&S::count_writes, "SELECT count(*) FROM writes WHERE key=?1 AND at>=?2 AND at<?3"},
    Entry{&S::expire_writes,
          "DELETE FROM writes WHERE (key,at,attempt) IN"
          " (SELECT key,at,attempt FROM writes WHERE at<?1 LIMIT ?2)"},
    Entry{&S::add_period,
          "INSERT INTO periods(key,start,ends,written) VALUES(?1,?2,?3,1)"
          " ON CONFLICT(key,start) DO UPDATE SET written=written+1"},
    Entry{&S::period_level, "SELECT written FROM periods WHERE key=?1 AND start=?2"},
    Entry{&S::expire_periods,
          "DELETE FROM periods WHERE (key,start) IN"
          " (SELECT key,start FROM periods WHERE ends<?1 LIMIT ?2)"},
    Entry{&S::insert_member, "INSERT OR IGNORE INTO members(key,object) VALUES(?1,?2)"},
    Entry{&S::delete_member, "DELETE FROM members WHERE key=?1 AND object=?2"},
    Entry{&S::count_members, "SELECT count(*) FROM members WHERE key=?1"},
    Entry{&S::list_members,
          "SELECT object FROM members WHERE key=?1 AND object>?3 ORDER BY object LIMIT ?2"},
    Entry{&S::clear_members, "DELETE FROM members WHERE key=?1"},
    Entry{&S::put_block,
          "INSERT INTO blocks(key,until,level,forget_at) VALUES(?1,?2,?3,?4)"
          " ON CONFLICT(key) DO UPDATE SET until=?2,level=?3,forget_at=?4"},
    Entry{&S::lift_block, "DELETE FROM blocks WHERE key=?1"},
    Entry{&S::list_blocks, "SELECT key,until,level,forget_at FROM blocks"},
    Entry{&S::expire_blocks,
          "DELETE FROM blocks WHERE key IN (SELECT key FROM blocks WHERE forget_at<=?1 LIMIT ?2)"},
    Entry{&S::insert_settled, "INSERT INTO settled(attempt,written,at) VALUES(?1,?2,?3)"},
    Entry{&S::find_settled, "SELECT written FROM settled WHERE attempt=?1"},
    Entry{&S::expire_settled,
          "DELETE FROM settled WHERE attempt IN (SELECT attempt FROM settled WHERE at<?1 LIMIT"
          " ?2)"},
    Entry{&S::note_granted,
          "INSERT INTO facts(name,value) VALUES('attempts_granted',?1)"
          " ON CONFLICT(name) DO UPDATE SET value=?1"},
    Entry{&S::note_written,
          "INSERT INTO facts(name,value) VALUES('written_at',?1)"
          " ON CONFLICT(name) DO UPDATE SET value=?1"},
    Entry{&S::row_count_of_attempts, "SELECT count(*) FROM (SELECT 1 FROM attempts LIMIT ?1)"},
    Entry{&S::row_count_of_writes, "SELECT count(*) FROM (SELECT 1 FROM writes LIMIT ?1)"},
    Entry{&S::row_count_of_periods, "SELECT count(*) FROM (SELECT 1 FROM periods LIMIT ?1)"},
    Entry{&S::row_count_of_members, "SELECT count(*) FROM (SELECT 1 FROM members LIMIT ?1)"},
    Entry{&S::row_count_of_blocks, "SELECT count(*) FROM (SELECT 1 FROM blocks LIMIT ?1)"},
    Entry{&S::put_token,
          "INSERT INTO tokens(id,digest,kind,owner_kind,owner,numbers,name,created,last_used)"
          " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)"},
    Entry{&S::drop_token, "DELETE FROM tokens WHERE id=?1"},
    Entry{&S::note_use, "UPDATE tokens SET last_used=max(last_used,?2) WHERE id=?1"},
    Entry{&S::list_tokens,
          "SELECT id,digest,kind,owner_kind,owner,numbers,name,created,last_used FROM tokens"},
};

}  // namespace

absl::StatusOr<SqliteStatements> SqliteStatements::prepare(SqliteDatabase& database) {
    SqliteStatements all;
    for (const Entry& entry : entries) {
        absl::StatusOr<SqliteStatement> statement = database.prepare(entry.sql);
        if (!statement.ok()) {
            return statement.status();
        }
        all.*entry.member = std::move(*statement);
    }
    return all;
}

}  // namespace ration
