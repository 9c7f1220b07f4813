// SQLite reaches files through a table of functions (sqlite.org/vfs.html); this one keeps them in
// memory. Locks mean nothing here: the ledger has one process, and the simulation one thread.
#include "sim/disk.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace ration::sim {
namespace {

constexpr int sector = 512;
constexpr std::size_t shared_region = 32 * 1024;

Disk* current = nullptr;

struct Handle {
    sqlite3_file base;
    std::shared_ptr<DiskFile>* file;
};

DiskFile& file_of(sqlite3_file* file) {
    return **reinterpret_cast<Handle*>(file)->file;
}

void put(std::string& bytes, std::uint64_t offset, std::string_view data) {
    if (bytes.size() < offset + data.size()) {
        bytes.resize(offset + data.size());
    }
    bytes.replace(offset, data.size(), data);
}

void perform(std::string& bytes, const DiskFile::Pending& pending) {
    if (pending.shorten) {
        bytes.resize(std::min<std::size_t>(bytes.size(), pending.offset));
    } else {
        put(bytes, pending.offset, pending.data);
    }
}

void write(DiskFile& file, std::uint64_t offset, std::string_view data) {
    put(file.cache, offset, data);
    file.pending.push_back({false, offset, std::string(data)});
}

int error_of(DiskFault fault, int otherwise) {
    return fault == DiskFault::full || fault == DiskFault::short_write ? SQLITE_FULL : otherwise;
}

int close_file(sqlite3_file* file) {
    delete reinterpret_cast<Handle*>(file)->file;
    return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
    if (current->operation().fails()) {
        return SQLITE_IOERR_READ;
    }
    const std::string& bytes = file_of(file).cache;
    const auto from = std::min(static_cast<std::size_t>(offset), bytes.size());
    const auto there = std::min(static_cast<std::size_t>(size), bytes.size() - from);
    std::memcpy(to, bytes.data() + from, there);
    if (there == static_cast<std::size_t>(size)) {
        return SQLITE_OK;
    }
    std::memset(static_cast<char*>(to) + there, 0, static_cast<std::size_t>(size) - there);
    return SQLITE_IOERR_SHORT_READ;
}

int write_file(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
    const std::string_view data(static_cast<const char*>(from), static_cast<std::size_t>(size));
    const Disk::Verdict verdict = current->operation();
    const auto at = static_cast<std::uint64_t>(offset);
    if (verdict.fault == DiskFault::none) {
        write(file_of(file), at, data);
        return SQLITE_OK;
    }
    if (verdict.fault == DiskFault::short_write || current->dead()) {
        write(file_of(file), at, data.substr(0, current->random().below(data.size() + 1)));
    }
    return error_of(verdict.fault, SQLITE_IOERR_WRITE);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
    if (current->operation().fails()) {
        return SQLITE_IOERR_TRUNCATE;
    }
    const DiskFile::Pending pending{true, static_cast<std::uint64_t>(size), {}};
    perform(file_of(file).cache, pending);
    file_of(file).pending.push_back(pending);
    return SQLITE_OK;
}

int sync_file(sqlite3_file* file, int) {
    const Disk::Verdict verdict = current->operation();
    if (verdict.fault == DiskFault::lost_sync) {
        current->lose_sync(file_of(file));
    }
    if (verdict.fails()) {
        return SQLITE_IOERR_FSYNC;
    }
    current->sync(file_of(file));
    return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
    *size = static_cast<sqlite3_int64>(file_of(file).cache.size());
    return SQLITE_OK;
}

int no_lock(sqlite3_file*, int) {
    return SQLITE_OK;
}
int check_lock(sqlite3_file*, int* held) {
    *held = 0;
    return SQLITE_OK;
}
int control(sqlite3_file*, int, void*) {
    return SQLITE_NOTFOUND;
}
int sector_size(sqlite3_file*) {
    return sector;
}
int characteristics(sqlite3_file*) {
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

int map_shared(sqlite3_file* file, int region, int size, int extend, void volatile** to) {
    auto& regions = file_of(file).shared;
    RATION_ASSERT(static_cast<std::size_t>(size) <= shared_region);
    if (static_cast<std::size_t>(region) >= regions.size() && extend == 0) {
        *to = nullptr;
        return SQLITE_OK;
    }
    while (regions.size() <= static_cast<std::size_t>(region)) {
        regions.push_back(std::make_unique<char[]>(shared_region));
    }
    *to = regions[static_cast<std::size_t>(region)].get();
    return SQLITE_OK;
}
int lock_shared(sqlite3_file*, int, int, int) {
    return SQLITE_OK;
}
void shared_barrier(sqlite3_file*) {}
int unmap_shared(sqlite3_file* file, int erase) {
    if (erase != 0) {
        file_of(file).shared.clear();
    }
    return SQLITE_OK;
}

constexpr sqlite3_io_methods methods = {2,
                                        close_file,
                                        read_file,
                                        write_file,
                                        truncate_file,
                                        sync_file,
                                        file_size,
                                        no_lock,
                                        no_lock,
                                        check_lock,
                                        control,
                                        sector_size,
                                        characteristics,
                                        map_shared,
                                        lock_shared,
                                        shared_barrier,
                                        unmap_shared,
                                        nullptr,
                                        nullptr};

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* got) {
    auto* handle = reinterpret_cast<Handle*>(file);
    handle->base.pMethods = nullptr;
    std::shared_ptr<DiskFile> found;
    if (name == nullptr) {
        found = std::make_shared<DiskFile>();
    } else if (!current->dead()) {
        found = current->find(name);
        if (found == nullptr && (flags & SQLITE_OPEN_CREATE) != 0) {
            found = current->make(name);
        }
    }
    if (found == nullptr) {
        return SQLITE_CANTOPEN;
    }
    handle->file = new std::shared_ptr<DiskFile>(std::move(found));
    handle->base.pMethods = &methods;
    if (got != nullptr) {
        *got = flags;
    }
    return SQLITE_OK;
}

int delete_file(sqlite3_vfs*, const char* name, int) {
    if (current->operation().fails()) {
        return SQLITE_IOERR_DELETE;
    }
    current->erase(name);
    return SQLITE_OK;
}

int access(sqlite3_vfs*, const char* name, int, int* there) {
    *there = current->find(name) != nullptr ? 1 : 0;
    return SQLITE_OK;
}

int full_name(sqlite3_vfs*, const char* name, int size, char* to) {
    sqlite3_snprintf(size, to, "%s", name);
    return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int size, char* to) {
    for (int i = 0; i < size; ++i) {
        to[i] = static_cast<char>(current->random().next());
    }
    return size;
}

int sleep(sqlite3_vfs*, int micros) {
    return micros;
}
int last_error(sqlite3_vfs*, int, char*) {
    return 0;
}
int current_time(sqlite3_vfs*, sqlite3_int64* time) {
    *time = 2'461'000LL * 86'400'000;  // some day: nothing of the ledger asks SQLite for the time
    return SQLITE_OK;
}

}  // namespace

Disk::Disk(Random& random) : random_(random), system_(std::make_unique<sqlite3_vfs>()) {
    RATION_ASSERT(current == nullptr);
    current = this;
    std::memset(system_.get(), 0, sizeof(sqlite3_vfs));
    system_->iVersion = 2;
    system_->szOsFile = sizeof(Handle);
    system_->mxPathname = 512;
    system_->zName = "simulated";
    system_->xOpen = open_file;
    system_->xDelete = delete_file;
    system_->xAccess = access;
    system_->xFullPathname = full_name;
    system_->xRandomness = randomness;
    system_->xSleep = sleep;
    system_->xGetLastError = last_error;
    system_->xCurrentTimeInt64 = current_time;
    sqlite3_vfs_register(system_.get(), 1);
    sqlite3_randomness(0, nullptr);  // SQLite's own generator starts again from this seed
}

Disk::~Disk() {
    sqlite3_vfs_unregister(system_.get());
    current = nullptr;
}

void Disk::fail_after(std::uint64_t n, DiskFault fault) {
    countdown_ = n;
    fault_ = n == 0 ? DiskFault::none : fault;
}

bool Disk::take_failed() {
    return std::exchange(failed_, false);
}

Disk::Verdict Disk::operation() {
    if (dead_) {
        return {DiskFault::io_error};
    }
    if (paused_ || countdown_ == 0 || --countdown_ > 0) {
        return {};
    }
    if (fault_ == DiskFault::power_cut) {
        dead_ = true;
        return {DiskFault::power_cut};
    }
    failed_ = true;
    return {fault_};
}

std::shared_ptr<DiskFile> Disk::find(const std::string& name) {
    const auto found = files_.find(name);
    return found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<DiskFile> Disk::make(const std::string& name) {
    return files_[name] = std::make_shared<DiskFile>();
}

void Disk::sync(DiskFile& file) {
    ++syncs_;
    if (lies_about_sync) {
        return;
    }
    for (const DiskFile::Pending& pending : file.pending) {
        perform(file.platter, pending);
    }
    file.pending.clear();
}

// After a failed fsync Linux may call the pages clean, though they were never written.
void Disk::lose_sync(DiskFile& file) {
    std::vector<DiskFile::Pending> kept;
    for (DiskFile::Pending& pending : file.pending) {
        if (random_.chance(50)) {
            kept.push_back(std::move(pending));
        }
    }
    file.pending = std::move(kept);
    holes_ = true;
}

void Disk::restart(bool power_was_cut) {
    for (auto& [name, file] : files_) {
        file->shared.clear();
        if (!power_was_cut) {
            continue;
        }
        const std::uint64_t mood = random_.below(3);  // nothing survives, a beginning, anything
        for (DiskFile::Pending& pending : file->pending) {
            if (mood == 0 || (mood == 1 && random_.chance(20))) {
                break;
            }
            if (mood == 2 && random_.chance(40)) {
                continue;
            }
            if (!pending.shorten && random_.chance(15)) {
                pending.data.resize(random_.below(pending.data.size() / sector + 1) * sector);
            }
            perform(file->platter, pending);
        }
        file->pending.clear();
        file->cache = file->platter;
    }
    dead_ = false;
    holes_ = holes_ && !power_was_cut;
    fail_after(0, DiskFault::none);
}

}  // namespace ration::sim
