// A disk in memory that SQLite writes to, and that fails and loses power on demand.
//
// Each file has what programs read (the system's cache) and what the platters hold; writes move
// over with a sync. A power cut keeps any part of what was not synced: some writes, half a write,
// none. The end of the process alone loses nothing. One fault can be set: the n-th operation from
// now on fails as told, once, or cuts the power in the middle of it.
//
// While a Disk lives it is SQLite's default file system in this process; file names mean nothing
// outside. Thread rule: one thread. One Disk at a time.
//
//   Disk disk(random);
//   disk.fail_after(7, DiskFault::short_write);
//   ... use SQLite ...
//   if (disk.dead()) disk.restart();       // power is back; whoever had files open must be gone
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/random.h"

struct sqlite3_vfs;

namespace ration::sim {

enum class DiskFault : std::uint8_t {
    none,
    io_error,     // the operation fails and does nothing
    full,         // a write fails for want of room
    short_write,  // half of it is written
    lost_sync,    // a sync fails and what it should have written may never be (fsync's worst case)
    power_cut,    // this and every later operation fails until `restart`
};

struct DiskFile {
    // A write that no sync has made safe yet, or (shorten) a cut to `offset` bytes.
    struct Pending {
        bool shorten = false;
        std::uint64_t offset = 0;
        std::string data;
    };
    std::string cache;
    std::string platter;
    std::vector<Pending> pending;
    std::vector<std::unique_ptr<char[]>> shared;  // SQLite's index of the log: memory only
};

class Disk {
public:
    explicit Disk(Random& random);
    ~Disk();
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    // The n-th operation from now (1: the next) meets the fault; n = 0 takes it back.
    void fail_after(std::uint64_t n, DiskFault fault);
    [[nodiscard]] bool dead() const { return dead_; }
    // True once after a fault other than a power cut was met.
    [[nodiscard]] bool take_failed();
    void forget_failure() { failed_ = false; }

    // The cache shows what a failed sync has kept from the platters.
    [[nodiscard]] bool has_holes() const { return holes_; }
    [[nodiscard]] std::uint64_t syncs() const { return syncs_; }  // that were good

    // Power goes now, wherever SQLite stands.
    void cut_power() { dead_ = true; }
    // The next process may come. After a power cut only the platters, and what chance left of the
    // writes under way, are there; after the end of a process alone, all that it had written.
    void restart(bool power_was_cut = true);

    void fill_holes() { holes_ = false; }
    // Operations do not count towards the fault meanwhile: somebody only looks.
    void pause(bool paused) { paused_ = paused; }

    // Says yes to every sync and writes nothing: a disk that lies, for tests of the simulation.
    bool lies_about_sync = false;

    // For the file system's functions.
    struct Verdict {
        DiskFault fault = DiskFault::none;
        [[nodiscard]] bool fails() const { return fault != DiskFault::none; }
    };
    [[nodiscard]] Verdict operation();
    [[nodiscard]] std::shared_ptr<DiskFile> find(const std::string& name);
    [[nodiscard]] std::shared_ptr<DiskFile> make(const std::string& name);
    void erase(const std::string& name) { files_.erase(name); }
    [[nodiscard]] Random& random() { return random_; }
    void sync(DiskFile& file);
    void lose_sync(DiskFile& file);

private:
    Random& random_;
    std::map<std::string, std::shared_ptr<DiskFile>> files_;
    std::uint64_t countdown_ = 0;
    DiskFault fault_ = DiskFault::none;
    std::uint64_t syncs_ = 0;
    bool holes_ = false;
    bool dead_ = false;
    bool failed_ = false;
    bool paused_ = false;
    std::unique_ptr<sqlite3_vfs> system_;
};

}  // namespace ration::sim
