#include "server/process/token_uses.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ration {

namespace {

class UsesJob final : public LedgerJob {
public:
    explicit UsesJob(std::vector<std::pair<std::string, Wall>> of) : uses_(std::move(of)) {
        request = NoteUses{uses_};
    }
    void done() override {}

private:
    const std::vector<std::pair<std::string, Wall>> uses_;
};

}  // namespace

void write_down_uses(TokenTable& table, LedgerRunner& runner) {
    for (;;) {
        std::vector<std::pair<std::string, Wall>> uses = table.take_uses(max_uses_per_job);
        if (uses.empty()) {
            return;
        }
        if (!runner.submit(std::make_shared<UsesJob>(std::move(uses)))) {
            return;
        }
    }
}

}  // namespace ration
