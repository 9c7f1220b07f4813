// What happened in a simulation, its end for a failure's text, and what was found to be wrong.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "ration/time.h"

namespace ration::sim {

class Journal {
public:
    void at(Now now) { now_ = now; }
    void note(std::string line) {
        lines_.push_back(stamp() + std::move(line));
        if (lines_.size() > kept) {
            lines_.pop_front();
        }
    }
    // The first one counts: what follows may be its consequence.
    void violated(const std::string& what) {
        if (violation_.empty()) {
            note("VIOLATION " + what);
            violation_ = what;
        }
    }
    [[nodiscard]] bool good() const { return violation_.empty(); }
    [[nodiscard]] const std::string& violation() const { return violation_; }
    [[nodiscard]] std::string text() const {
        std::string all;
        for (const std::string& line : lines_) {
            all += line + "\n";
        }
        return all;
    }

private:
    static constexpr std::size_t kept = 60;

    [[nodiscard]] std::string stamp() const {
        return "  " + std::to_string(now_.mono.time_since_epoch().count() / 1'000'000) + " ms  ";
    }
    Now now_;
    std::deque<std::string> lines_;
    std::string violation_;
};

}  // namespace ration::sim
