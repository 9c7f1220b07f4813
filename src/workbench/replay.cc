// Problem: answers come in the order of their completion, output goes in the order of the input.
// Idea: one slot per request line since the oldest unanswered one; an answer fills its slot, and
// filled slots at the front are written. A request that an upstream holds back holds back what came
// later, at most for the upstream timeout.
#include "workbench/replay.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "server/http/fields.h"
#include "workbench/answer_line.h"
#include "workbench/instant.h"
#include "workbench/line_reader.h"
#include "workbench/replay_line.h"
#include "workbench/virtual_service.h"

namespace ration {

namespace {

class Replay {
public:
    Replay(const ReplayOptions& options, std::ostream& out, std::ostream& errors)
        : options_(options), out_(out), errors_(errors) {}

    bool run(std::istream& in);

private:
    struct Slot {
        std::string id;
        std::string at;
        std::optional<std::string> answer;
    };

    bool take_line(std::string_view text);
    bool start_service(Wall first);
    bool take_request(ReplayLine& line, Mono at);
    bool take_event(const ReplayEvent& event, Mono at);
    void reload(const std::string& file, Mono at);
    void on_answer(std::uint64_t ticket, const ServiceAnswer& answer);
    bool wrong(int column, std::string_view reason);

    const ReplayOptions& options_;
    std::ostream& out_;
    std::ostream& errors_;
    std::unique_ptr<VirtualService> service_;
    int line_number_ = 0;
    Wall first_{};
    Wall latest_{};
    std::deque<Slot> slots_;
    std::uint64_t first_ticket_ = 0;  // of slots_.front()
};

bool Replay::wrong(int column, std::string_view reason) {
    errors_ << Problem{options_.input_name, {line_number_, column}, std::string(reason)}.text()
            << '\n';
    return false;
}

bool Replay::start_service(Wall first) {
    first_ = latest_ = first;
    auto service = VirtualService::create(
        {.rules = options_.rules,
         .start = {first_mono, first},
         .upstream_timeout = options_.upstream_timeout,
         .counter_bytes = options_.counter_bytes,
         .max_in_flight = options_.max_in_flight},
        [this](std::uint64_t ticket, const ServiceAnswer& answer) { on_answer(ticket, answer); });
    if (!service.ok()) {
        return wrong(1, std::string(service.status().message()));
    }
    service_ = *std::move(service);
    return true;
}

void Replay::on_answer(std::uint64_t ticket, const ServiceAnswer& answer) {
    Slot& slot = slots_[ticket - first_ticket_];
    slot.answer = answer_line(slot.id, slot.at, answer);
    while (!slots_.empty() && slots_.front().answer) {
        out_ << *slots_.front().answer << '\n';
        slots_.pop_front();
        ++first_ticket_;
    }
}

bool Replay::take_line(std::string_view text) {
    LineError error;
    std::optional<ReplayLine> line = parse_replay_line(text, error);
    if (!line) {
        return wrong(error.column, error.reason);
    }
    if (service_ == nullptr && !start_service(line->at)) {
        return false;
    }
    if (line->at < latest_) {
        return wrong(line->at_column,
                     cat("\"at\" is before the line above, which has ", rfc3339(latest_)));
    }
    latest_ = line->at;
    const Mono at = first_mono + (line->at - first_);
    return line->event ? take_event(*line->event, at) : take_request(*line, at);
}

bool Replay::take_request(ReplayLine& line, Mono at) {
    // What is due comes first, so that its slots are written before a new one opens.
    service_->run_until(at);
    const std::uint64_t ticket = first_ticket_ + slots_.size();
    slots_.push_back({std::move(line.id_text), std::move(line.at_text), std::nullopt});
    const absl::Status begun = service_->request(at, std::move(line.request), ticket);
    if (!begun.ok()) {
        slots_.pop_back();
        return wrong(1, std::string(begun.message()));
    }
    return true;
}

bool Replay::take_event(const ReplayEvent& event, Mono at) {
    switch (event.kind) {
        case ReplayEvent::Kind::restart: {
            const absl::Status restarted = service_->restart(at);
            return restarted.ok() || wrong(1, std::string(restarted.message()));
        }
        case ReplayEvent::Kind::policy:
            reload(event.file, at);
            return true;
        case ReplayEvent::Kind::counters_down:
        case ReplayEvent::Kind::counters_up:
            service_->set_counters(at, event.kind == ReplayEvent::Kind::counters_up);
            return true;
    }
    return true;
}

void Replay::reload(const std::string& file, Mono at) {
    Problems problems;
    auto policy = Policy::load(file, process_environment, problems, options_.rules.directory.get());
    for (const Problem& problem : problems.errors()) {
        errors_ << problem.text() << '\n';
    }
    if (policy != nullptr) {
        service_->reload(at, {std::move(policy), options_.rules.directory});
    } else {
        errors_ << Problem{options_.input_name, {line_number_, 1}, ""}.text()
                << "the policy before stays in force\n";
    }
}

bool Replay::run(std::istream& in) {
    bool good = true;
    std::string text;
    while (good) {
        if (in.rdbuf()->in_avail() <= 0) {
            out_.flush();  // the next line may be long in coming
        }
        ++line_number_;
        const LineRead read = read_line(in, max_replay_line_bytes, text);
        if (read == LineRead::end) {
            break;
        }
        if (read == LineRead::too_long) {
            good = wrong(1, cat("the line has more than ", max_replay_line_bytes, " bytes"));
        } else if (!http::trimmed(text).empty()) {
            good = take_line(text);
        }
    }
    if (service_ != nullptr) {
        service_->run_out();
    }
    out_.flush();
    return good;
}

}  // namespace

bool replay(const ReplayOptions& options, std::istream& in, std::ostream& out,
            std::ostream& errors) {
    return Replay(options, out, errors).run(in);
}

}  // namespace ration
