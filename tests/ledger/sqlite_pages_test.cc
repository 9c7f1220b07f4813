// Files that have lost a part, or got one too many: none may start as if nothing were missing. And
// what a crash leaves is no such file.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "ledger/ledger_files.h"
#include "ledger/ledger_world.h"
#include "ration/ledger.h"

namespace ration {
namespace {

constexpr std::size_t page = 4096;

// Keeps an answer whose body fills pages of its own.
void keep_answer(Ledger& ledger, std::string_view name, std::size_t size) {
    const AttemptId attempt = ledger.apply_one(Reserve{key(name), {}, {}}, noon).reserved.attempt;
    const StoredResponse response = created(std::string(size, 'b'));
    const Settle written{attempt, SettleKind::written, &response, {}};
    ASSERT_TRUE(ledger.apply_one(written, noon).status.ok());
}

bool keeps_answer(const std::string& path, std::string_view name, std::size_t size) {
    const auto ledger = open_sqlite_ledger({path, {}});
    if (!ledger.ok()) {
        ADD_FAILURE() << ledger.status();
        return false;
    }
    const LedgerReply reply = (*ledger)->apply_one(Reserve{key(name), {}, {}}, noon);
    return reply.reserved.verdict == ReserveVerdict::replay &&
           reply.reserved.response.body == std::string(size, 'b');
}

// A closed ledger that keeps the answer "first", in its last pages.
std::string make_ledger(const std::string& path) {
    {
        const auto ledger = open_sqlite_ledger({path, {}});
        EXPECT_TRUE(ledger.ok()) << ledger.status();
        keep_answer(**ledger, "first", 100'000);
    }
    return read_all(path);
}

void set_number(std::string& bytes, std::size_t at, std::uint32_t number) {
    for (std::size_t i = 0; i < 4; ++i) {
        bytes[at + i] = static_cast<char>(number >> (24 - 8 * i));
    }
}

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return number;
}

struct Damage {
    const char* name;
    std::function<void(std::string&)> make;
    const char* why;
};

std::function<void(std::string&)> cut(std::size_t bytes) {
    return [bytes](std::string& file) { file.resize(file.size() - bytes); };
}
std::function<void(std::string&)> leave(std::size_t bytes) {
    return [bytes](std::string& file) { file.resize(bytes); };
}
std::function<void(std::string&)> append(std::size_t bytes) {
    return [bytes](std::string& file) { file.append(bytes, 'x'); };
}
// Adds to a number of the header.
std::function<void(std::string&)> change(std::size_t at, std::uint32_t by) {
    return [at, by](std::string& file) { set_number(file, at, number_at(file, at) + by); };
}

TEST(SqlitePages, AFileWithoutALogHasExactlyThePagesOfItsHeader) {
    const Damage damages[] = {
        {"a byte is gone", cut(1), "torn"},
        {"half a page is gone", cut(page / 2), "torn"},
        {"all but a byte of a page is gone", cut(page - 1), "torn"},
        {"a page is gone", cut(page), "torn"},
        {"a page and a half are gone", cut(page * 3 / 2), "torn"},
        {"the first page is left", leave(page), "torn"},
        {"half of the first page is left", leave(page / 2), "torn"},
        {"the header is left", leave(100), "torn"},
        {"not all of the header is left", leave(99), "ends within its first page"},
        {"the first word is left", leave(16), "ends within its first page"},
        {"not all of the first word is left", leave(15), "not begin as a SQLite database"},
        {"a byte is left", leave(1), "not begin as a SQLite database"},
        {"nothing is left", leave(0), "empty"},
        {"a byte too many", append(1), "longer"},
        {"half a page too many", append(page / 2), "longer"},
        {"a page too many", append(page), "longer"},
        {"the header counts a page more", change(28, 1), "torn"},
        {"the header counts a page less", change(28, ~0U), "longer"},
        {"the header's count is not valid", change(92, 1), "how many pages"},
        {"the header's change counter is not of the count", change(24, 1), "how many pages"},
        {"the header counts none", [](std::string& file) { set_number(file, 28, 0); },
         "how many pages"},
        {"pages of another size", [](std::string& file) { file[16] = 0x20; }, "torn"},
        {"pages of no size", [](std::string& file) { file[16] = file[17] = 0; }, "pages of 0"},
        {"pages of an odd size", [](std::string& file) { file[17] = 7; }, "pages of 4103"},
    };
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    const std::string good = make_ledger(path);
    ASSERT_TRUE(open_status(path).ok()) << open_status(path);
    ASSERT_EQ(check_sqlite_ledger(path), absl::OkStatus());
    ASSERT_EQ(read_all(path), good);
    for (const Damage& damage : damages) {
        SCOPED_TRACE(damage.name);
        std::string bytes = good;
        damage.make(bytes);
        write_all(path, bytes);
        write_all(path + "-wal", "");
        expect_refused(path, damage.why);
        std::filesystem::remove(path + "-wal");
        expect_refused(path, damage.why);
    }
    write_all(path, good);
    EXPECT_TRUE(keeps_answer(path, "first", 100'000));
}

// Who puts an empty file there for a first start gets a ledger; who has emptied one gets told.
TEST(SqlitePages, AnEmptyFileIsNewOnlyWhereNoLedgerWas) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    write_all(path, "");
    EXPECT_NE(check_sqlite_ledger(path).ToString().find("the file is empty"), std::string::npos);
    EXPECT_TRUE(open_status(path).ok()) << open_status(path);
    EXPECT_TRUE(open_status(path).ok()) << open_status(path);
    write_all(path, "");
    expect_refused(path, "was a ledger");
    std::filesystem::remove(path);  // its owner means it
    EXPECT_TRUE(open_status(path).ok()) << open_status(path);
}

// A ledger whose log has what its file has not yet: the closed file, and a second answer in the
// log.
struct Crashed {
    std::string file, log, settled;  // settled: the file after the log was moved into it
};

Crashed make_crashed(const TemporaryFolder& folder) {
    const std::string made = folder.file("made.db");
    Crashed crashed;
    crashed.file = make_ledger(made);
    {
        const auto ledger = open_sqlite_ledger({made, {}});
        EXPECT_TRUE(ledger.ok()) << ledger.status();
        keep_answer(**ledger, "second", 50'000);
        EXPECT_EQ(read_all(made), crashed.file);
        crashed.log = read_all(made + "-wal");
    }
    crashed.settled = read_all(made);
    EXPECT_GT(crashed.settled.size(), crashed.file.size() + 40'000);
    EXPECT_EQ(crashed.file.size() % page, 0U);
    return crashed;
}

TEST(SqlitePages, ACrashInTheMiddleOfACheckpointStarts) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    const Crashed crashed = make_crashed(folder);
    for (std::size_t size = crashed.file.size(); size <= crashed.settled.size(); size += 3001) {
        for (const std::string& from : {crashed.settled, crashed.file}) {
            // Pages are written in ascending order, or those past the old end reach the disk first.
            std::string bytes = from.substr(0, size);
            bytes += crashed.settled.substr(bytes.size(), size - bytes.size());
            write_all(path, bytes);
            write_all(path + "-wal", crashed.log);
            EXPECT_EQ(check_sqlite_ledger(path), absl::OkStatus()) << size;
            EXPECT_TRUE(keeps_answer(path, "first", 100'000)) << size;
            EXPECT_TRUE(keeps_answer(path, "second", 50'000)) << size;
            EXPECT_EQ(read_all(path).size(), crashed.settled.size());
        }
    }
}

// A log whose last commit did not reach the disk: what was committed before it counts.
TEST(SqlitePages, ALogWithoutItsEndStarts) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    const Crashed crashed = make_crashed(folder);
    for (std::size_t cut = 1; cut < crashed.log.size(); cut += 7001) {
        for (const bool shorter : {true, false}) {
            std::string log = crashed.log;
            const std::size_t end = log.size() - cut;
            log = shorter ? log.substr(0, end) : log.replace(end, 1, "\x7f");
            write_all(path, crashed.file);
            write_all(path + "-wal", log);
            EXPECT_EQ(check_sqlite_ledger(path), absl::OkStatus()) << cut;
            EXPECT_TRUE(keeps_answer(path, "first", 100'000)) << cut;
        }
    }
}

TEST(SqlitePages, APageThatIsNeitherInTheFileNorInItsLogIsMissed) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    const Crashed crashed = make_crashed(folder);
    const std::string begun = crashed.log.substr(0, crashed.log.size() / 2);
    const struct {
        const char* name;
        std::string file, log;
        const char* why;
    } cases[] = {
        {"a byte", crashed.file.substr(0, crashed.file.size() - 1), crashed.log, "neither in"},
        {"a page", crashed.file.substr(0, crashed.file.size() - page), crashed.log, "neither in"},
        {"many", crashed.file.substr(0, 8 * page + 7), crashed.log, "neither in"},
        {"all but one", crashed.file.substr(0, page), crashed.log, "neither in"},
        {"all but the header", crashed.file.substr(0, 100), crashed.log, "neither in"},
        {"a byte, a log of no use", crashed.file.substr(0, crashed.file.size() - 1), "noise",
         "torn"},
        {"a page, the begin of a log", crashed.file.substr(0, crashed.file.size() - page),
         crashed.log.substr(0, 32), "torn"},
        {"new pages, and the log does not reach them",
         crashed.settled.substr(0, crashed.settled.size() - page), begun, "damaged"},
    };
    for (const auto& one : cases) {
        SCOPED_TRACE(one.name);
        write_all(path, one.file);
        write_all(path + "-wal", one.log);
        expect_refused(path, one.why);
    }
}

TEST(SqlitePages, ALogWithoutItsFileIsKept) {
    const TemporaryFolder folder;
    const std::string path = folder.file("l.db");
    const std::string link = folder.file("link.db");
    const Crashed crashed = make_crashed(folder);
    std::filesystem::create_symlink("l.db", link);
    write_all(path + "-wal", crashed.log);
    expect_refused(path, "it is missing, but its log " + path + "-wal is not");
    expect_refused(link, "it is missing, but its log " + path + "-wal is not");
    EXPECT_FALSE(std::filesystem::exists(path));
    write_all(path, "");
    expect_refused(path, "it is empty, but its log " + path + "-wal is not");
    // As the message says: put the file back,
    write_all(path, crashed.file);
    EXPECT_TRUE(keeps_answer(path, "second", 50'000));
    // or move the log away.
    std::filesystem::remove(path);
    write_all(path + "-wal", crashed.log);
    std::filesystem::rename(path + "-wal", folder.file("kept"));
    EXPECT_TRUE(open_status(path).ok()) << open_status(path);
    std::filesystem::remove(path);
    write_all(path + "-wal", "");  // an empty log keeps nothing
    EXPECT_TRUE(open_status(path).ok()) << open_status(path);
}

// A process of its own that dies at the first write of a file beyond `size`, in the middle of it.
bool dies_at(const std::string& path, rlim_t size) {
    const pid_t child = ::fork();
    if (child == 0) {
        const struct rlimit none {
            0, 0
        };
        const struct rlimit tight {
            size, size
        };
        ::signal(SIGXFSZ, SIG_DFL);
        ::setrlimit(RLIMIT_CORE, &none);
        ::setrlimit(RLIMIT_FSIZE, &tight);
        const auto ledger = open_sqlite_ledger({path, {}});
        ::_exit(ledger.ok() && (*ledger)->apply_one(Reserve{key("k"), {}, {}}, noon).status.ok()
                    ? 0
                    : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ;
}

TEST(SqlitePages, WhereverItDiesAtTheFirstStartTheNextOneIsGood) {
    const TemporaryFolder folder;
    std::size_t deaths = 0;
    std::size_t size = 0;
    for (bool died = true; died; ++deaths) {
        const std::string path = folder.file("l" + std::to_string(size) + ".db");
        write_all(path + ".lock", "1 ledger");  // of one whose file was removed
        died = dies_at(path, size);
        EXPECT_TRUE(open_status(path).ok()) << size << open_status(path);
        EXPECT_EQ(check_sqlite_ledger(path), absl::OkStatus()) << size;
        size += size < 8192 ? 450 : 5000;
    }
    EXPECT_GT(deaths, 20U);
}

std::string mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return std::to_string((info.st_mode >> 6) & 7) + std::to_string((info.st_mode >> 3) & 7) +
           std::to_string(info.st_mode & 7);
}

TEST(SqlitePages, ANewLedgerIsItsOwnersAloneAndAnOldOneKeepsItsMode) {
    const TemporaryFolder folder;
    const mode_t before = ::umask(022);
    const std::string path = folder.file("new.db");
    const std::string given = folder.file("given.db");
    write_all(given, "");
    ASSERT_EQ(::chmod(given.c_str(), 0640), 0);
    const std::string target = folder.file("target.db");
    std::filesystem::create_symlink("target.db", folder.file("link.db"));
    {
        const auto fresh = open_sqlite_ledger({path, {}});
        const auto old = open_sqlite_ledger({given, {}});
        const auto linked = open_sqlite_ledger({folder.file("link.db"), {}});
        ASSERT_TRUE(fresh.ok() && old.ok() && linked.ok());
        keep_answer(**fresh, "first", 10);
        keep_answer(**old, "first", 10);
        keep_answer(**linked, "first", 10);
        for (const char* beside : {"", "-wal"}) {
            EXPECT_EQ(mode_of(path + beside), "600") << beside;
            EXPECT_EQ(mode_of(given + beside), "640") << beside;
            EXPECT_EQ(mode_of(target + beside), "600") << beside;
        }
        EXPECT_EQ(mode_of(path + ".lock"), "600");
        EXPECT_EQ(mode_of(target + ".lock"), "600");
    }
    EXPECT_TRUE(open_status(given).ok());
    EXPECT_EQ(mode_of(given), "640");
    EXPECT_EQ(::umask(before), mode_t{022});
}

}  // namespace
}  // namespace ration
