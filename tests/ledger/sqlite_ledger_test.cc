// What is the SQLite file's own: whose it is, what is refused, what a failed commit leaves behind.
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "ledger/ledger_files.h"
#include "ledger/ledger_world.h"
#include "ledger/sqlite_ledger.h"
#include "ration/ledger.h"

namespace ration {
namespace {

TEST(SqliteLedger, ASecondOwnerIsToldWhoHoldsTheFile) {
    const TemporaryFolder folder;
    const auto first = open_sqlite_ledger({folder.file("l.db"), {}});
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = open_status(folder.file("l.db"));
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(second.ToString().find("in use by process " + std::to_string(::getpid())),
              std::string::npos)
        << second;
}

TEST(SqliteLedger, ForeignAndDamagedFilesAreRefusedAndLeftAsTheyAre) {
    const TemporaryFolder folder;
    const std::string text = folder.file("notes.txt");
    write_all(text, "Dear diary, nothing to do with limits.");
    const std::string short_text = folder.file("short.txt");
    write_all(short_text, "hi");
    const std::string other = folder.file("other.db");
    sqlite3* database = nullptr;
    sqlite3_open(other.c_str(), &database);
    sqlite3_exec(database, "CREATE TABLE t(x); INSERT INTO t VALUES(1)", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    const std::string torn = folder.file("torn.db");
    { ASSERT_TRUE(open_status(torn).ok()); }
    write_all(torn, read_all(torn).substr(0, 9000));
    for (const std::string& path : {text, short_text, other, torn}) {
        const std::string before = read_all(path);
        const absl::Status status = open_status(path);
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << path << status;
        EXPECT_NE(status.ToString().find(path), std::string::npos);
        EXPECT_EQ(read_all(path), before) << path;
    }
}

// What a crash has left beside a database belongs to its own program, which will want it.
TEST(SqliteLedger, ARefusedFileKeepsItsLogAndItsJournal) {
    const TemporaryFolder folder;
    struct Case {
        const char* name;
        const char* mode;
        const char* mark;
        const char* left;  // beside the file after the crash
    };
    for (const Case& one :
         {Case{"other.db", "WAL", "", "-wal"},
          Case{"newer.db", "WAL", "PRAGMA application_id=0x72617469; PRAGMA user_version=99",
               "-wal"},
          Case{"marked.db", "DELETE", "PRAGMA application_id=7", "-journal"},
          Case{"plain.db", "DELETE", "", "-journal"}}) {
        const std::string made = folder.file("made.db");
        const std::string path = folder.file(one.name);
        sqlite3* database = nullptr;
        sqlite3_open(made.c_str(), &database);
        const std::string script = std::string("PRAGMA journal_mode=") + one.mode + ";" + one.mark +
                                   ";CREATE TABLE t(x); CREATE TABLE u(x);"
                                   "PRAGMA cache_size=1; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 "
                                   "UNION ALL SELECT i+1 FROM n WHERE i<5000) INSERT INTO t "
                                   "SELECT hex(randomblob(20)) FROM n;";
        ASSERT_EQ(sqlite3_exec(database, script.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
        for (const std::string beside : {"", one.left}) {
            write_all(path + beside, read_all(made + beside));
        }
        sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
        sqlite3_close(database);
        std::filesystem::remove(made);
        const std::string before = read_all(path);
        const std::string left = read_all(path + one.left);
        ASSERT_FALSE(left.empty()) << one.name;
        EXPECT_EQ(open_status(path).code(), absl::StatusCode::kFailedPrecondition) << one.name;
        EXPECT_EQ(check_sqlite_ledger(path).code(), absl::StatusCode::kFailedPrecondition);
        EXPECT_EQ(read_all(path), before) << one.name;
        EXPECT_EQ(read_all(path + one.left), left) << one.name;
        EXPECT_FALSE(std::filesystem::exists(path + "-shm")) << one.name;
    }
}

TEST(SqliteLedger, WhoeverHoldsTheFileIsToldUnderAnyName) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    const std::string link = folder.file("link.db");
    const auto first = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(first.ok()) << first.status();
    std::filesystem::create_symlink("l.db", link);
    const std::string holder = "in use by process " + std::to_string(::getpid());
    EXPECT_NE(open_status(link).ToString().find(holder), std::string::npos) << open_status(link);
    EXPECT_NE(check_sqlite_ledger(link).ToString().find(holder), std::string::npos);
    // The claim is taken away by hand: SQLite's own lock still holds.
    std::filesystem::remove(path + ".lock");
    const absl::Status second = open_status(path);
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(second.ToString().find("in use by another process"), std::string::npos) << second;
    EXPECT_EQ(second.ToString().find("damaged"), std::string::npos) << second;
    EXPECT_EQ(check_sqlite_ledger(path).code(), absl::StatusCode::kUnavailable);
}

TEST(SqliteLedger, ANewerSchemaIsRefused) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    { ASSERT_TRUE(open_status(path).ok()); }
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    sqlite3_exec(database, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    EXPECT_NE(open_status(path).ToString().find("newer"), std::string::npos);
}

// A database that is sound to SQLite and ours by its mark may still lack what a ledger needs.
TEST(SqliteLedger, AFileWithoutAPartOfALedgerIsRefusedAndTheCheckNamesIt) {
    const TemporaryFolder folder;
    const struct {
        const char* sql;
        const char* named;
    } cases[] = {{"DROP TABLE writes", "'writes'"},
                 {"DROP TABLE settled", "'settled'"},
                 {"DROP TABLE tokens", "'tokens'"},
                 {"DROP INDEX attempts_by_identity", "'attempts_by_identity'"},
                 {"ALTER TABLE members RENAME COLUMN object TO thing", "'members'"},
                 {"ALTER TABLE blocks RENAME TO walls", "'blocks'"}};
    for (const auto& one : cases) {
        const std::string path = folder.file("l.db");
        std::filesystem::remove(path);
        { ASSERT_TRUE(open_status(path).ok()); }
        sqlite3* database = nullptr;
        sqlite3_open(path.c_str(), &database);
        ASSERT_EQ(sqlite3_exec(database, one.sql, nullptr, nullptr, nullptr), SQLITE_OK) << one.sql;
        sqlite3_close(database);
        const std::string before = read_all(path);
        for (const absl::Status& status : {open_status(path), check_sqlite_ledger(path)}) {
            EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << one.sql << status;
            EXPECT_NE(status.ToString().find(path + ": damaged"), std::string::npos) << status;
            EXPECT_NE(status.ToString().find(one.named), std::string::npos) << status;
        }
        EXPECT_EQ(read_all(path), before) << one.sql;
    }
}

// What somebody added for their own questions takes nothing away.
TEST(SqliteLedger, AnIndexOfSomebodyElseIsNoDamage) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    { ASSERT_TRUE(open_status(path).ok()); }
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    sqlite3_exec(database, "CREATE INDEX mine ON writes(attempt)", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    EXPECT_TRUE(open_status(path).ok()) << open_status(path);
    EXPECT_TRUE(check_sqlite_ledger(path).ok());
}

// The first schema had no table of what operators settled.
TEST(SqliteLedger, AFileOfTheFirstSchemaIsBroughtUpToDate) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    AttemptId attempt = 0;
    {
        auto ledger = *open_sqlite_ledger({path, {}});
        attempt = ledger->apply_one(Reserve{key("k"), {}, {}}, noon).reserved.attempt;
    }
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    sqlite3_exec(database, "DROP TABLE settled; DROP TABLE tokens; PRAGMA user_version=1", nullptr,
                 nullptr, nullptr);
    sqlite3_close(database);
    EXPECT_TRUE(check_sqlite_ledger(path).ok()) << check_sqlite_ledger(path);
    const auto ledger = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    const LedgerReply reply = (*ledger)->apply_one(SettleDoubt{attempt, false}, noon);
    EXPECT_EQ(reply.doubt, DoubtOutcome::settled) << reply.status;
}

TEST(SqliteLedger, CheckSaysWhenItCannotSay) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    EXPECT_EQ(check_sqlite_ledger(path).code(), absl::StatusCode::kNotFound);
    EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
    const auto holder = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(holder.ok());
    const absl::Status held = check_sqlite_ledger(path);
    EXPECT_EQ(held.code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(held.ToString().find("in use by process " + std::to_string(::getpid())),
              std::string::npos)
        << held;
    const std::string notes = folder.file("notes.txt");
    write_all(notes,
              "Dear diary, nothing to do with limits. It goes on for more than sixteen bytes.");
    EXPECT_EQ(check_sqlite_ledger(notes).code(), absl::StatusCode::kFailedPrecondition);
}

// While it lives, no file of this process grows beyond `size`: writes fail as on a full disk.
class TightFiles {
public:
    explicit TightFiles(rlim_t size) : old_handler_(signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const struct rlimit tight {
            size, before_.rlim_max
        };
        setrlimit(RLIMIT_FSIZE, &tight);
    }
    ~TightFiles() {
        setrlimit(RLIMIT_FSIZE, &before_);
        signal(SIGXFSZ, old_handler_);
    }
    TightFiles(const TightFiles&) = delete;
    TightFiles& operator=(const TightFiles&) = delete;

private:
    struct rlimit before_ {};
    void (*old_handler_)(int);
};

TEST(SqliteLedger, AFullDiskAtTheStartIsToldOfTheFile) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    absl::Status created;
    {
        const TightFiles tight(4096);
        created = open_status(path);
    }
    EXPECT_EQ(created.code(), absl::StatusCode::kUnavailable) << created;
    EXPECT_NE(created.ToString().find(path + ": "), std::string::npos) << created;
    {
        const auto ledger = open_sqlite_ledger({path, {}});  // of what is there so far
        ASSERT_TRUE(ledger.ok()) << ledger.status();
        ASSERT_TRUE((*ledger)->apply_one(Reserve{key("k"), {}, {}}, noon).status.ok());
    }
    absl::Status opened;
    {
        const TightFiles tight(64);  // room for the name of the file's owner
        opened = open_status(path);
    }
    EXPECT_FALSE(opened.ok());
    EXPECT_NE(opened.ToString().find(path + ": "), std::string::npos) << opened;
}

// However often writing fails, what waits to be written down is one word for each attempt.
TEST(SqliteLedger, DoubtsThatAreNotOnDiskAreAsManyAsTheAttempts) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    constexpr std::size_t attempts = 3;
    {
        auto opened = SqliteLedger::open({path, {}});
        ASSERT_TRUE(opened.ok());
        SqliteLedger& ledger = **opened;
        std::vector<LedgerRequest> ends;
        for (std::size_t i = 0; i < attempts; ++i) {
            const std::string name = "k" + std::to_string(i);
            const LedgerReply begun = ledger.apply_one(Reserve{key(name), {}, {}}, noon);
            ends.emplace_back(Settle{begun.reserved.attempt, SettleKind::failed, nullptr, {}});
        }
        {
            const TightFiles tight(1);
            std::vector<LedgerReply> replies(ends.size());
            for (int i = 0; i < 50; ++i) {
                ledger.apply(ends, noon, replies);
                EXPECT_FALSE(replies.front().status.ok());
                EXPECT_FALSE(ledger.apply_one(Reserve{key("new"), {}, {}}, noon).status.ok());
                EXPECT_FALSE(ledger.sweep(noon, 100).ok());
                ASSERT_EQ(ledger.unsaved_doubts(), attempts) << i;
            }
        }
        EXPECT_EQ(ledger.stats().doubtful, attempts);
        EXPECT_TRUE(ledger.sweep(noon, 100).ok());
        EXPECT_EQ(ledger.unsaved_doubts(), 0U);
    }
    const auto again = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ((*again)->doubtful(0, 10).size(), attempts);
}

// A file size limit for the database makes the next growing commit fail like a full disk.
TEST(SqliteLedger, AFullDiskFailsTheBatchAndKeepsTheAttemptInDoubt) {
    const TemporaryFolder folder;
    auto opened = open_sqlite_ledger({folder.file("l.db"), {}});
    ASSERT_TRUE(opened.ok());
    Ledger& ledger = **opened;
    const CeilingUse ceiling = daily("caller", 1);
    const LedgerReply begun = ledger.apply_one(Reserve{key("k"), {&ceiling, 1}, {}}, noon);
    ASSERT_TRUE(begun.status.ok());

    const StoredResponse response = created(std::string(100'000, 'x'));
    LedgerReply failed;
    {
        const TightFiles tight(4096);
        failed = ledger.apply_one(
            Settle{begun.reserved.attempt, SettleKind::written, &response, {}}, noon);
    }
    EXPECT_EQ(failed.status.code(), absl::StatusCode::kUnavailable) << failed.status;
    EXPECT_FALSE(ledger.stats().healthy);
    ASSERT_EQ(ledger.doubtful(0, 10).size(), 1U);
    const LedgerReply retry = ledger.apply_one(Reserve{key("k"), {&ceiling, 1}, {}}, noon);
    ASSERT_TRUE(retry.status.ok()) << retry.status;
    EXPECT_TRUE(retry.reserved.second_try);
    EXPECT_TRUE(ledger.stats().healthy);
}

// It would be read as 0, and ids that upstreams and operators know would be given out again.
TEST(SqliteLedger, AWrongCountOfGrantedAttemptsIsRefusedAtStart) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    {
        auto ledger = open_sqlite_ledger({path, {}});
        ASSERT_TRUE(ledger.ok());
        ASSERT_TRUE((*ledger)->apply_one(Reserve{key("k"), {}, {}}, noon).status.ok());
    }
    const std::string good = read_all(path);
    for (const std::string value : {"'x'", "x'31'", "1.5", "-1", "''", "NULL",
                                    "9223372036854775800", "4611686018427387905"}) {
        change_file(path, "UPDATE facts SET value=" + value + " WHERE name='attempts_granted'");
        const absl::Status status = open_status(path);
        EXPECT_NE(status.ToString().find(path + ": damaged: how many attempts were granted"),
                  std::string::npos)
            << value << ": " << status;
        write_all(path, good);
        EXPECT_TRUE(open_status(path).ok());
    }
}

TEST(SqliteLedger, ALedgerWithoutASchemaVersionIsRefused) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    { ASSERT_TRUE(open_status(path).ok()); }
    change_file(path, "PRAGMA user_version=0");
    const std::string why = path + ": damaged: its schema version is 0";
    EXPECT_EQ(open_status(path).message(), why);
    EXPECT_EQ(check_sqlite_ledger(path).message(), why);
}

// A batch fails at its first request; what it would have settled after that is over all the same.
TEST(SqliteLedger, AFailedBatchLeavesNothingRunningThatItWouldHaveSettled) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    { ASSERT_TRUE(open_status(path).ok()); }
    change_file(path,
                "CREATE TRIGGER fails BEFORE INSERT ON attempts WHEN NEW.identity=x'626164' "
                "BEGIN SELECT RAISE(ABORT, 'as on a bad disk'); END");
    auto opened = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(opened.ok()) << opened.status();
    Ledger& ledger = **opened;
    const CeilingUse ceiling = daily("caller", 1);
    const Reserve mine{key("mine"), {&ceiling, 1}, {}};
    const AttemptId attempt = ledger.apply_one(mine, noon).reserved.attempt;
    const LedgerRequest batch[] = {Reserve{key("bad"), {}, {}},
                                   Settle{attempt, SettleKind::written, nullptr, {}}};
    std::array<LedgerReply, 2> replies;
    ledger.apply(batch, noon, replies);
    ASSERT_FALSE(replies[1].status.ok());
    EXPECT_EQ(ledger.stats().running, 0U);
    ASSERT_EQ(ledger.doubtful(0, 10).size(), 1U);
    EXPECT_EQ(ledger.doubtful(0, 10).front().attempt, attempt);
    // Its place counts as written, and its key may be tried again.
    EXPECT_EQ(*ledger.level(ceiling), 1U);
    EXPECT_TRUE(ledger.apply_one(mine, noon).reserved.second_try);
}

// Nor does it fail anybody else: its key is known to be done, and what was kept is lost.
TEST(SqliteLedger, AKeptAnswerThatCannotBeReadIsToldAsNotKept) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    {
        auto ledger = open_sqlite_ledger({path, {}});
        ASSERT_TRUE(ledger.ok());
        const AttemptId id =
            (*ledger)->apply_one(Reserve{key("damaged"), {}, {}}, noon).reserved.attempt;
        const StoredResponse response = created("{}");
        const Settle written{id, SettleKind::written, &response, {}};
        ASSERT_TRUE((*ledger)->apply_one(written, noon).status.ok());
    }
    change_file(path, "UPDATE attempts SET headers='nonsense'");
    auto ledger = open_sqlite_ledger({path, {}});
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    const LedgerRequest batch[] = {Reserve{key("damaged"), {}, {}},
                                   Reserve{key("damaged", 2), {}, {}},
                                   Reserve{key("mine"), {}, {}}};
    std::array<LedgerReply, 3> replies;
    (*ledger)->apply(batch, noon, replies);
    EXPECT_TRUE(replies[0].status.ok()) << replies[0].status;
    EXPECT_EQ(replies[0].reserved.verdict, ReserveVerdict::not_kept);
    EXPECT_EQ(replies[1].reserved.verdict, ReserveVerdict::mismatch);
    EXPECT_EQ(replies[2].reserved.verdict, ReserveVerdict::started);
}

// Whether an object exists that nobody has named stays open for a day, not until the next sweep.
TEST(SqliteLedger, ADoubtAboutAQuotaCountsForADay) {
    auto opened = open_sqlite_ledger({":memory:", {}});
    ASSERT_TRUE(opened.ok());
    Ledger& ledger = **opened;
    const QuotaUse quota{"calendars", 1};
    const AttemptId attempt = ledger.apply_one(Reserve{{}, {}, {&quota, 1}}, noon).reserved.attempt;
    const Settle doubt{attempt, SettleKind::doubt, nullptr, {}};
    ASSERT_TRUE(ledger.apply_one(doubt, noon).status.ok());
    ASSERT_TRUE(ledger.sweep(noon + 24h - 1ns, 100).ok());
    EXPECT_EQ(ledger.apply_one(Reserve{{}, {}, {&quota, 1}}, noon).reserved.verdict,
              ReserveVerdict::quota_reached);
    ASSERT_TRUE(ledger.sweep(noon + 24h, 100).ok());
    EXPECT_EQ(ledger.apply_one(Reserve{{}, {}, {&quota, 1}}, noon).reserved.verdict,
              ReserveVerdict::started);
}

TEST(SqliteLedger, DoubtsAreListedOldestFirst) {
    auto opened = open_sqlite_ledger({":memory:", {}});
    ASSERT_TRUE(opened.ok());
    Ledger& ledger = **opened;
    for (int i = 0; i < 40; ++i) {
        const std::string name = std::to_string(i);
        const Reserve reserve{key(name), {}, {}};
        ASSERT_TRUE(ledger.apply_one(reserve, noon).status.ok());
    }
    ledger.disown();
    const std::vector<DoubtfulAttempt> listed = ledger.doubtful(0, 7);
    ASSERT_EQ(listed.size(), 7U);
    for (std::size_t i = 0; i < listed.size(); ++i) {
        EXPECT_EQ(listed[i].attempt, listed.front().attempt + static_cast<AttemptId>(i));
    }
}

}  // namespace
}  // namespace ration
