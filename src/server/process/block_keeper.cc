#include "server/process/block_keeper.h"

#include <memory>
#include <string>

namespace ration {

namespace {

class KeyedJob final : public LedgerJob {
public:
    explicit KeyedJob(std::string_view of) : key(of) {}
    void done() override {}

    const std::string key;
};

}  // namespace

void BlockKeeper::keep(const Block& block) {
    const auto job = std::make_shared<KeyedJob>(block.key);
    job->request = PutBlock{job->key, block.until, block.level, block.forget_at};
    static_cast<void>(runner_.submit(job));
}

void BlockKeeper::drop(std::string_view key) {
    const auto job = std::make_shared<KeyedJob>(key);
    job->request = LiftBlock{job->key};
    static_cast<void>(runner_.submit(job));
}

}  // namespace ration
