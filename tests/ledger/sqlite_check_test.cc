// What the check of a closed file says of rows that no ledger writes.
#include "ledger/ledger_files.h"
#include "ledger/ledger_world.h"
#include "ration/ledger.h"

namespace ration {
namespace {

// A ledger with rows of each sort in each table, made by the ledger itself.
void fill(const std::string& path) {
    const auto opened = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    Ledger& ledger = **opened;
    const CeilingUse ceilings[] = {daily("day", 9), monthly("month", 9)};
    const QuotaUse quota{"calendars", 9};
    const auto begin = [&](std::string_view name) {
        return ledger.apply_one(Reserve{key(name), ceilings, {&quota, 1}}, noon).reserved.attempt;
    };
    const StoredResponse response = created("");
    const QuotaChange made{"calendars", "cal_1", true};
    IssuedToken token{"tok_1", {},  "personal_token", "user", "u_ana", {{"a", 1}, {"b", -2}}, "",
                      noon,    noon};
    const LedgerRequest requests[] = {
        Settle{begin("kept"), SettleKind::written, &response, {&made, 1}},
        Settle{begin("large"), SettleKind::written, nullptr, {}},
        Settle{begin("doubt"), SettleKind::doubt, nullptr, {}},
        Settle{begin("asked"), SettleKind::doubt, nullptr, {}},
        SettleDoubt{4, true},
        PutBlock{"block", noon + 1h, 2, noon + 2h},
        PutToken{&token}};
    for (const LedgerRequest& request : requests) {
        const LedgerReply reply = ledger.apply_one(request, noon);
        ASSERT_TRUE(reply.status.ok()) << reply.status;
        ASSERT_EQ(reply.doubt, DoubtOutcome::settled);
    }
    ASSERT_EQ(begin("runs"), 5);
    ASSERT_TRUE(ledger.apply_one(Reserve{{}, ceilings, {}}, noon).status.ok());
}

class SqliteCheck : public ::testing::Test {
protected:
    void SetUp() override {
        fill(path_);
        good_ = read_all(path_);
        ASSERT_EQ(check_sqlite_ledger(path_), absl::OkStatus());
    }
    // What the check says of the good file after that change.
    absl::Status after(const std::string& sql) {
        write_all(path_, good_);
        change_file(path_, sql);
        return check_sqlite_ledger(path_);
    }

    const TemporaryFolder folder_;
    const std::string path_ = folder_.file("l.db");
    std::string good_;
};

void expect_found(const absl::Status& status, std::string_view finding) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.ToString().find(finding), std::string::npos) << status << " lacks " << finding;
}

// One value of each wrong type; a column's own affinity turns none of them into a good one.
TEST_F(SqliteCheck, FindsEveryColumnOfAWrongType) {
    const struct {
        const char* table;
        std::vector<const char*> numbers, texts, blobs;
    } tables[] = {
        {"attempts",
         {"state", "started_at", "expires_at", "keep_for", "second_try", "status"},
         {"places", "headers"},
         {"identity", "fingerprint", "body"}},
        {"writes", {"at", "attempt"}, {"key"}, {}},
        {"periods", {"start", "ends", "written"}, {"key"}, {}},
        {"members", {}, {"key", "object"}, {}},
        {"blocks", {"until", "level", "forget_at"}, {"key"}, {}},
        {"settled", {"written", "at"}, {}, {}},
        {"tokens",
         {"created", "last_used"},
         {"id", "kind", "owner_kind", "owner", "numbers", "name"},
         {"digest"}},
        {"facts", {"value"}, {}, {}},
    };
    for (const auto& table : tables) {
        const auto try_all = [&](const std::vector<const char*>& names,
                                 std::initializer_list<const char*> values) {
            for (const std::string name : names) {
                for (const std::string value : values) {
                    // Of one row: a unique column takes a value once.
                    const std::string sql = std::string("UPDATE ") + table.table + " SET " + name +
                                            "=" + value + " WHERE (" + name + ") IN (SELECT " +
                                            name + " FROM " + table.table + " WHERE " + name +
                                            " IS NOT NULL LIMIT 1)";
                    SCOPED_TRACE(sql);
                    expect_found(after(sql), std::string("rows of ") + table.table +
                                                 " with a wrong '" + name + "'");
                }
            }
        };
        try_all(table.numbers, {"'x'", "x'31'", "1.5", "''"});
        try_all(table.texts, {"x'31'"});
        try_all(table.blobs, {"'x'", "7"});
    }
}

TEST_F(SqliteCheck, FindsEveryNumberOutOfRange) {
    const struct {
        const char* sql;
        const char* finding;
    } cases[] = {
        {"UPDATE facts SET value=-1", "1 rows of facts with a wrong 'value'"},
        {"UPDATE facts SET value=(1<<62)+1", "1 rows of facts with a wrong 'value'"},
        {"UPDATE attempts SET id=(1<<62)+1 WHERE id=1", "1 rows of attempts with a wrong 'id'"},
        {"UPDATE writes SET attempt=(1<<62)+1 WHERE attempt=1",
         "1 rows of writes with a wrong 'attempt'"},
        {"UPDATE attempts SET id=-id WHERE id=1", "1 rows of attempts with a wrong 'id'"},
        {"UPDATE attempts SET state=0 WHERE id=1", "wrong 'state'"},
        {"UPDATE attempts SET state=4 WHERE id=1", "wrong 'state'"},
        {"UPDATE attempts SET started_at=-1 WHERE id=1", "wrong 'started_at'"},
        {"UPDATE attempts SET expires_at=-1 WHERE id=1", "wrong 'expires_at'"},
        {"UPDATE attempts SET keep_for=-1 WHERE id=1", "wrong 'keep_for'"},
        {"UPDATE attempts SET second_try=2 WHERE id=1", "wrong 'second_try'"},
        {"UPDATE attempts SET status=199 WHERE id=1", "wrong 'status'"},
        {"UPDATE attempts SET status=300 WHERE id=1", "wrong 'status'"},
        {"UPDATE attempts SET identity=x'' WHERE id=1", "wrong 'identity'"},
        {"UPDATE attempts SET fingerprint=zeroblob(31) WHERE id=1", "wrong 'fingerprint'"},
        {"UPDATE attempts SET fingerprint=zeroblob(33) WHERE id=1", "wrong 'fingerprint'"},
        {"UPDATE attempts SET fingerprint=NULL WHERE id=1", "half an idempotency key"},
        {"UPDATE attempts SET identity=NULL WHERE id=1", "half an idempotency key"},
        {"UPDATE attempts SET identity=NULL,fingerprint=NULL WHERE id=1",
         "finished attempts without a key"},
        {"UPDATE attempts SET keep_for=1 WHERE identity IS NULL", "keep an answer without a key"},
        {"UPDATE attempts SET status=200 WHERE state=2", "unfinished attempts with an answer"},
        {"UPDATE attempts SET expires_at=5 WHERE state=2", "doubts that end before they begin"},
        {"UPDATE attempts SET status=NULL WHERE id=1", "not whole"},
        {"UPDATE attempts SET headers=NULL WHERE id=1", "not whole"},
        {"UPDATE attempts SET body=NULL WHERE id=1", "not whole"},
        {"UPDATE attempts SET headers='3:a' WHERE id=1", "attempt 1: unreadable field"},
        {"UPDATE attempts SET places='nonsense' WHERE id=3", "attempt 3: unreadable field"},
        {"UPDATE attempts SET places='1:31:a1:01:1' WHERE id=3", "attempt 3: unreadable field"},
        {"UPDATE attempts SET places='1:01:a2:-11:1' WHERE id=3", "attempt 3: unreadable field"},
        {"UPDATE attempts SET places='1:01:a1:51:5' WHERE id=3", "attempt 3: unreadable field"},
        {"UPDATE attempts SET places='1:00:1:41:5' WHERE id=3", "attempt 3: unreadable field"},
        {"UPDATE writes SET at=-1", "rows of writes with a wrong 'at'"},
        {"UPDATE writes SET attempt=0 WHERE attempt=1", "1 rows of writes with a wrong 'attempt'"},
        {"UPDATE writes SET key=''", "rows of writes with a wrong 'key'"},
        {"UPDATE periods SET key=''", "rows of periods with a wrong 'key'"},
        {"UPDATE periods SET start=-1", "rows of periods with a wrong 'start'"},
        {"UPDATE periods SET ends=start", "1 billing periods out of range"},
        {"UPDATE periods SET written=0", "1 billing periods out of range"},
        {"UPDATE members SET key=''", "rows of members with a wrong 'key'"},
        {"UPDATE blocks SET key=''", "rows of blocks with a wrong 'key'"},
        {"UPDATE blocks SET until=-1", "rows of blocks with a wrong 'until'"},
        {"UPDATE blocks SET level=-1", "rows of blocks with a wrong 'level'"},
        {"UPDATE blocks SET level=4294967296", "rows of blocks with a wrong 'level'"},
        {"UPDATE blocks SET forget_at=until-1", "1 blocks out of range"},
        {"UPDATE settled SET attempt=0", "rows of settled with a wrong 'attempt'"},
        {"UPDATE settled SET written=2", "rows of settled with a wrong 'written'"},
        {"UPDATE settled SET at=-1", "rows of settled with a wrong 'at'"},
        {"UPDATE tokens SET id=''", "rows of tokens with a wrong 'id'"},
        {"UPDATE tokens SET digest=zeroblob(31)", "rows of tokens with a wrong 'digest'"},
        {"UPDATE tokens SET kind=''", "rows of tokens with a wrong 'kind'"},
        {"UPDATE tokens SET owner_kind=''", "rows of tokens with a wrong 'owner_kind'"},
        {"UPDATE tokens SET owner=''", "rows of tokens with a wrong 'owner'"},
        {"UPDATE tokens SET created=-1", "rows of tokens with a wrong 'created'"},
        {"UPDATE tokens SET last_used=created-1", "1 issued tokens used before they were made"},
        {"UPDATE tokens SET numbers='a'", "token tok_1: unreadable field"},
        {"UPDATE tokens SET numbers='a=1;'", "token tok_1: unreadable field"},
        {"UPDATE tokens SET numbers=';a=1'", "token tok_1: unreadable field"},
        {"UPDATE tokens SET numbers='=1'", "token tok_1: unreadable field"},
        {"UPDATE tokens SET numbers='a=1x'", "token tok_1: unreadable field"},
    };
    for (const auto& one : cases) {
        SCOPED_TRACE(one.sql);
        expect_found(after(one.sql), one.finding);
    }
}

TEST_F(SqliteCheck, TakesTheNumbersAtTheirBounds) {
    for (const char* sql :
         {"UPDATE attempts SET status=200 WHERE id=1", "UPDATE attempts SET status=299 WHERE id=1",
          "UPDATE attempts SET started_at=0,expires_at=0 WHERE id=1",
          "UPDATE attempts SET second_try=1",
          "UPDATE attempts SET places='1:01:a1:41:5' WHERE id=3", "UPDATE writes SET at=0",
          "UPDATE periods SET start=0,ends=1,written=1",
          "UPDATE blocks SET level=4294967295,forget_at=until", "UPDATE settled SET written=0,at=0",
          "UPDATE tokens SET created=0,last_used=0,numbers='',name=''",
          "INSERT INTO facts VALUES('of somebody else', 'x')"}) {
        EXPECT_EQ(after(sql), absl::OkStatus()) << sql;
    }
}

}  // namespace
}  // namespace ration
