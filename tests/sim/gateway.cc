#include "sim/gateway.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "engine/durable.h"

namespace ration::sim {

namespace {

constexpr Nanos upstream_timeout = std::chrono::seconds(10);
constexpr Nanos ledger_timeout = std::chrono::seconds(2);
constexpr Nanos slow_commit = std::chrono::seconds(4);

}  // namespace

struct Gateway::Call {
    std::uint64_t id = 0;
    Asked asked;
    Answered answered;
    std::string credential;
    std::string request_id;
    std::vector<Header> headers;
    Exchange exchange;
    std::shared_ptr<Durable> durable;
    std::shared_ptr<Job> job;
    Stage stage = Stage::asking;
    std::optional<ReserveVerdict> verdict;
    std::optional<Nanos> wait;
    std::optional<std::size_t> place;
    Upstream::Done done;
};

// One question to the ledger, as src/server/proxy/ledger_call.h: the answer is a message to the
// call, which may be gone by then.
class Gateway::Job final : public LedgerJob {
public:
    Job(Gateway& gateway, std::uint64_t of, std::shared_ptr<Durable> durable)
        : gateway_(gateway), call(of), durable_(std::move(durable)) {}

    // At the instant of the commit; what is learnt from it waits for the next event.
    void done() override {
        const bool power = gateway_.parts_.ledger.powered();
        const Wall now = gateway_.parts_.scheduler.now().wall;
        Judge& judge = gateway_.parts_.judge;
        if (const Reserve* reserve = std::get_if<Reserve>(&request)) {
            if (!power) {
                judge.unsure(asked, *reserve, now);
            } else if (reply.status.ok()) {
                place = judge.verdict(asked, *reserve, reply.reserved, now);
            }
        } else if (const Settle* settle = std::get_if<Settle>(&request)) {
            tell_settled(*settle, power, now);
        } else if (const SettleDoubt* word = std::get_if<SettleDoubt>(&request)) {
            if (!power) {
                judge.unsure(word->attempt);
            } else if (reply.status.ok() && reply.found) {
                judge.operator_settled(word->attempt, word->was_written, now);
            }
        }
        if (power) {
            auto self = std::static_pointer_cast<Job>(myself.lock());
            gateway_.later_if_alive(std::chrono::microseconds(50),
                                    [self] { self->gateway_.deliver(*self); });
        }
    }

private:
    void tell_settled(const Settle& settle, bool power, Wall now) {
        Judge& judge = gateway_.parts_.judge;
        if (!place) {
            if (!power || !reply.status.ok()) {
                judge.quota_drifted();
            }
            return;
        }
        judge.ended(*place, settle.kind, reply.status.ok());
        if (!power) {
            judge.unsure(*place);
        } else if (reply.status.ok() && settle.kind == SettleKind::written) {
            judge.kept(
                *place,
                settle.response == nullptr ? std::nullopt : std::optional(settle.response->body),
                now);
        }
    }

    Gateway& gateway_;

public:
    const std::uint64_t call;          // 0: nobody waits
    Asked asked;                       // of a reservation
    std::optional<std::size_t> place;  // of a settlement: its; of a reservation: what it got
    std::weak_ptr<LedgerJob> myself;

private:
    std::shared_ptr<Durable> durable_;  // owns what the request views
};

Gateway::Gateway(Parts parts, GatewayOptions options)
    : parts_(parts), options_(std::move(options)) {
    counters_ = *open_memory_counters({.max_bytes = min_counter_bytes, .shards = 1});
    auto rules = std::make_shared<Snapshot>();
    rules->policy = options_.policy;
    rules->directory = options_.directory;
    rules->since = parts_.scheduler.now().mono;
    engine_ = std::make_unique<Engine>(*counters_, std::move(rules));
    LedgerRunnerOptions runner;
    runner.own_thread = false;
    runner.max_batch = 1 + parts_.random.below(12);
    runner.max_held = 4;
    runner_ = std::make_unique<LedgerRunner>(parts_.ledger, parts_.scheduler, runner);
    for (const DoubtfulAttempt& doubt : parts_.ledger.doubtful(0, 10'000)) {
        parts_.judge.found(doubt);
    }
}

Gateway::~Gateway() {
    *alive_ = false;
    const bool calendar = std::any_of(calls_.begin(), calls_.end(), [](const auto& call) {
        return call.second->asked.path.starts_with("/v1/calendars");
    });
    if (calendar || runner_->queued() > 0) {
        parts_.judge.quota_drifted();  // what it did is not, or may not be, in writing
    }
    runner_.reset();
    parts_.judge.died();
}

void Gateway::later_if_alive(Nanos delay, std::function<void()> what) {
    parts_.scheduler.after(delay, [alive = alive_, what = std::move(what)] {
        if (*alive) {
            what();
        }
    });
}

void Gateway::for_call(std::uint64_t id, Nanos delay, std::function<void(Call&)> what) {
    later_if_alive(delay, [this, id, what = std::move(what)] {
        const auto found = calls_.find(id);
        if (found != calls_.end()) {
            what(*found->second);
        }
    });
}

// ---- the ledger's thread ----

void Gateway::submit(std::shared_ptr<Job> job) {
    job->myself = job;
    static_cast<void>(runner_->submit(std::move(job)));
    schedule_turn(parts_.random.chance(options_.slow_commit_percent)
                      ? slow_commit
                      : Nanos(parts_.random.between(50'000, 3'000'000)));
}

void Gateway::schedule_turn(Nanos delay) {
    if (!std::exchange(turn_scheduled_, true)) {
        later_if_alive(delay, [this] { turn(); });
    }
}

void Gateway::turn() {
    turn_scheduled_ = false;
    if (runner_->turn()) {
        schedule_turn(std::chrono::milliseconds(1));
    } else if (runner_->held() > 0) {
        schedule_turn(std::chrono::milliseconds(20));
    }
}

// ---- a request ----

void Gateway::request(const Asked& asked, Answered answered) {
    auto made = std::make_unique<Call>();
    Call& call = *made;
    call.id = next_call_++;
    calls_[call.id] = std::move(made);
    call.asked = asked;
    call.answered = std::move(answered);
    call.credential = "Bearer " + asked.credential;
    call.request_id = cat("r", std::to_string(call.id));
    call.headers = {{"Authorization", call.credential},
                    {"X-Forwarded-For", call.asked.address},
                    {"Content-Type", "application/json"}};
    if (!call.asked.key.empty()) {
        call.headers.push_back({"Idempotency-Key", call.asked.key});
    }
    const RequestView view{call.asked.method, call.asked.path, call.headers,
                           Peer{*IpAddress::parse("127.0.0.1")}, call.request_id};
    engine_->begin(call.exchange, view, parts_.scheduler.now());
    if (call.exchange.decision.kind != Decision::Kind::admit) {
        answer(call, engine_->answer(call.exchange));
    } else if (call.exchange.durable != nullptr) {
        ask_ledger(call);
    } else {
        send(call);
    }
}

void Gateway::ask_ledger(Call& call) {
    call.durable = call.exchange.durable;
    if (!engine_->ask(call.exchange, call.asked.body)) {
        return answer(call, engine_->answer(call.exchange));
    }
    if (call.durable->only_settles()) {
        return send(call);
    }
    reserve(call);
}

void Gateway::reserve(Call& call) {
    call.stage = Stage::asking;
    call.job = std::make_shared<Job>(*this, call.id, call.durable);
    call.job->request = call.durable->reserve();
    call.job->asked = call.asked;
    call.job->hold_until = parts_.scheduler.now().mono + default_hold;
    submit(call.job);
    for_call(call.id, default_hold + ledger_timeout, [this, job = call.job](Call& waiting) {
        if (waiting.stage != Stage::asking || waiting.job != job) {
            return;
        }
        if (waiting.job->abandon()) {
            parts_.judge.left(waiting.asked, std::get<Reserve>(waiting.job->request),
                              parts_.scheduler.now().wall);
        }
        fail(waiting, BuiltIn::ledger_unavailable);
    });
}

void Gateway::deliver(Job& job) {
    const auto found = calls_.find(job.call);
    if (std::holds_alternative<Reserve>(job.request)) {
        if (found != calls_.end()) {
            reserved(*found->second, job.reply);
        } else if (job.reply.status.ok() && job.reply.reserved.attempt != 0) {
            auto undo = std::make_shared<Job>(*this, 0, nullptr);
            undo->request = Settle{job.reply.reserved.attempt, SettleKind::not_sent, nullptr, {}};
            undo->place = job.place;
            submit(std::move(undo));
        }
    } else if (found != calls_.end() && found->second->stage == Stage::settling) {
        release(*found->second);
    } else if (found != calls_.end() && found->second->stage == Stage::found) {
        answer(*found->second, engine_->answer(found->second->exchange));
    }
}

void Gateway::reserved(Call& call, const LedgerReply& reply) {
    const Reserve& reserve = std::get<Reserve>(call.job->request);
    call.place = call.job->place;
    if (reply.status.ok()) {
        call.verdict = reply.reserved.verdict;
        if (reply.reserved.verdict == ReserveVerdict::ceiling_reached) {
            call.wait =
                reserve.ceilings[reply.reserved.index].window.end - call.exchange.arrived.wall;
        }
    }
    engine_->judge(call.exchange, reply);
    if (call.exchange.decision.kind != Decision::Kind::admit) {
        if (call.durable->open()) {
            settle(call, SettleKind::not_sent, {});
        }
        return answer(call, engine_->answer(call.exchange));
    }
    if (!call.durable->probing()) {
        return send(call);
    }
    call.stage = Stage::probing;
    for_call(call.id, Nanos(parts_.random.between(100'000, 40'000'000)), [this](Call& asking) {
        probe_answered(
            asking, parts_.upstream.probe(asking.asked.identity(),
                                          asking.place && parts_.judge.is_pending(*asking.place)));
    });
}

// Found: it is kept and replayed. Nothing there: the request begins anew. Else the doubt stays.
void Gateway::probe_answered(Call& call, const Upstream::Done& done) {
    if (Durable::probed(done.status) == Durable::Probe::unknown) {
        settle(call, SettleKind::doubt, {});
        return fail(call, BuiltIn::bad_gateway);
    }
    const std::optional<Settle> settle = call.durable->settle_probed(
        call.exchange,
        {done.status, {}, done.body, done.body.size() <= call.durable->max_answer()});
    auto job = std::make_shared<Job>(*this, call.id, call.durable);
    job->request = *settle;
    job->place = call.place;
    const bool found = settle->kind == SettleKind::written;
    call.stage = found ? Stage::found : Stage::asking;
    submit(std::move(job));
    if (!found) {
        call.place.reset();
        reserve(call);
    }
}

// ---- the upstream ----

void Gateway::send(Call& call) {
    call.stage = Stage::forwarding;
    const Fate fate = parts_.upstream.fate(options_.trouble_percent);
    if (fate.end == Fate::End::unreachable) {
        return upstream_ended(call, fate, {});
    }
    if (call.place) {
        parts_.judge.sending(*call.place, fate.acts && fate.refuses_with == 0);
    }
    act(call, fate);
    if (fate.end == Fate::End::never) {
        for_call(call.id, upstream_timeout,
                 [this, fate](Call& late) { upstream_ended(late, fate, {}); });
    }
}

// What the service does, it does whether or not the gateway still lives.
void Gateway::act(Call& call, const Fate& fate) {
    const UpstreamRequest request{call.asked.method, call.asked.path,
                                  call.durable != nullptr && !call.durable->key().empty()
                                      ? call.asked.identity()
                                      : std::string(),
                                  call.asked.body, call.place.value_or(0)};
    const auto done = std::make_shared<Upstream::Done>();
    done->status = fate.refuses_with == 0 ? 201 : fate.refuses_with;
    if (fate.acts && fate.refuses_with == 0) {
        parts_.scheduler.after(fate.effect, [parts = parts_, request, done, place = call.place] {
            *done = parts.upstream.act(request);
            if (place) {
                parts.judge.acted(*place);
            }
        });
    }
    if (fate.end == Fate::End::answered || fate.end == Fate::End::broken) {
        for_call(call.id, fate.reply,
                 [this, fate, done](Call& now) { upstream_ended(now, fate, *done); });
    }
}

void Gateway::upstream_ended(Call& call, const Fate& fate, const Upstream::Done& done) {
    switch (fate.end) {
        case Fate::End::answered:
            call.done = done;
            call.stage = Stage::settling;
            if (options_.answers_first) {
                const std::uint64_t id = call.id;
                settle(call, done.status < 300 ? SettleKind::written : SettleKind::failed, done);
                return for_call(id, Nanos(0), [this](Call& early) { release(early); });
            }
            return settle(call, done.status < 300 ? SettleKind::written : SettleKind::failed, done);
        case Fate::End::unreachable:
            settle(call, SettleKind::not_sent, {});
            return fail(call, BuiltIn::bad_gateway);
        case Fate::End::broken:
            settle(call, SettleKind::doubt, {});
            return fail(call, BuiltIn::bad_gateway);
        case Fate::End::never:
            settle(call, SettleKind::doubt, {});
            return fail(call, BuiltIn::gateway_timeout);
    }
}

void Gateway::settle(Call& call, SettleKind kind, const Upstream::Done& done) {
    std::optional<Settle> settle;
    if (call.durable != nullptr) {
        settle = call.durable->settle(
            kind, {done.status, {}, done.body, done.body.size() <= call.durable->max_answer()});
    }
    if (!settle) {
        if (kind == SettleKind::written || kind == SettleKind::failed) {
            release(call);
        } else if (call.durable != nullptr && call.durable->only_settles()) {
            parts_.judge.quota_drifted();
        }
        return;
    }
    auto job = std::make_shared<Job>(*this, call.id, call.durable);
    job->request = *settle;
    job->place = call.place;
    submit(std::move(job));
}

// ---- the client ----

void Gateway::release(Call& call) {
    Answer out;
    out.status = call.done.status;
    out.body = call.done.body;
    engine_->response_fields(call.exchange, [&](std::string_view name, std::string_view value) {
        out.headers.emplace_back(name, value);
    });
    answer(call, std::move(out));
}

void Gateway::fail(Call& call, BuiltIn which) {
    answer(call, engine_->failure(call.exchange, which));
}

void Gateway::answer(Call& call, Answer answer) {
    call.stage = Stage::over;
    engine_->finish(call.exchange, {.kind = Ending::Kind::answered, .status = answer.status},
                    parts_.scheduler.now());
    const Heard heard{answer.status, std::move(answer.headers), std::move(answer.body)};
    parts_.judge.heard(heard, {call.verdict, call.wait, call.place});
    const Answered answered = std::move(call.answered);
    calls_.erase(call.id);
    answered(heard);
}

void Gateway::settle_doubt(AttemptId attempt, bool was_written) {
    auto job = std::make_shared<Job>(*this, 0, nullptr);
    job->request = SettleDoubt{attempt, was_written};
    submit(std::move(job));
}

}  // namespace ration::sim
