#include "workbench/step_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/problems.h"
#include "server/http/fields.h"
#include "workbench/expect_reader.h"
#include "workbench/instant.h"
#include "workbench/test_keys.h"
#include "workbench/yaml_values.h"

namespace ration {

namespace {

// `at:` of a step: a span since the case's start, or a date.
Nanos read_when(const StepContext& context, const YamlNode& node) {
    const YamlNode* at = node.find("at");
    if (at == nullptr) {
        return context.previous;
    }
    const std::string text = context.reader.text(*at, "at").value_or("0");
    Nanos when{0};
    if (const auto span = parse_span(text); span.ok()) {
        when = *span;
    } else if (const auto date = read_instant(text); date.ok()) {
        when = *date - context.start;
    } else {
        context.reader.error(at->at, std::string(span.status().message()) + ", or a date");
        return context.previous;
    }
    if (when >= latest_instant - context.start) {
        context.reader.error(at->at, "beyond the year 2200");
        return context.previous;
    }
    if (when < context.previous) {
        context.reader.error(at->at, cat("before the step above, which is at ",
                                         decimal_seconds(context.previous), " s"));
        return context.previous;
    }
    return when;
}

void read_takes(Reader& reader, const YamlNode& node, ScriptedAnswer& answer) {
    if (node.is_scalar() && node.scalar == "never") {
        answer.takes.reset();
        return;
    }
    const Nanos takes = read_span(reader, node, "takes").value_or(Nanos(0));
    if (takes < Nanos(0) || takes > max_test_takes) {
        reader.error(node.at, "takes is from 0 to 366d, or never");
        return;
    }
    answer.takes = takes;
}

ScriptedAnswer read_upstream(Reader& reader, const YamlNode& node,
                             const KeyTable& keys = test_upstream_keys) {
    ScriptedAnswer answer;
    if (!reader.mapping(node, keys)) {
        return answer;
    }
    if (const YamlNode* status = node.find("status")) {
        answer.status = static_cast<int>(
            reader.whole(*status, "the upstream's status", 200, 599).value_or(200));
    }
    if (const YamlNode* headers = node.find("headers")) {
        read_fields(reader, *headers, answer.headers);
    }
    if (const YamlNode* body = node.find("body")) {
        answer.body = read_body(*body);
    }
    if (const YamlNode* takes = node.find("takes")) {
        read_takes(reader, *takes, answer);
    }
    if (const YamlNode* probe = node.find("probe")) {
        answer.probe.push_back(read_upstream(reader, *probe, test_probe_keys));
    }
    return answer;
}

// "GET /v1/quote".
void read_request_line(Reader& reader, const YamlNode& node, TestStep& step) {
    const auto text = reader.text(node, "request");
    if (!text) {
        return;
    }
    const std::string& line = *text;
    const std::size_t blank = line.find(' ');
    step.title = line;
    step.request.method = line.substr(0, blank);
    if (blank != std::string::npos) {
        step.request.target = line.substr(blank + 1);
    }
    const std::string& target = step.request.target;
    const bool graphic = std::all_of(target.begin(), target.end(), [](char c) {
        return static_cast<unsigned char>(c) > ' ' && c != '\x7f';
    });
    if (!http::is_token(step.request.method) || target.empty() || !graphic) {
        reader.error(node.at, "a request is a method and a path, such as GET /v1/quote");
    }
}

void read_request(const StepContext& context, const YamlNode& node, TestStep& step) {
    Reader& reader = context.reader;
    read_request_line(reader, *node.find("request"), step);
    RequestDefaults own = context.defaults;
    read_request_defaults(reader, node, own);
    step.request.headers = std::move(own.headers);
    step.request.address = std::move(own.address);
    if (own.key) {
        step.request.headers.emplace_back("Authorization", cat("Bearer ", *own.key));
    }
    if (const YamlNode* body = node.find("body")) {
        step.request.body = read_body(*body);
    }
    if (const YamlNode* times = node.find("times")) {
        step.times = reader.whole(*times, "times", 1, max_test_times).value_or(1);
    }
    if (const YamlNode* every = node.find("every")) {
        step.every = read_span(reader, *every, "every").value_or(Nanos(0));
        const Nanos most =
            (latest_instant - context.start - step.when) / static_cast<std::int64_t>(step.times);
        if (step.every < Nanos(0) || step.every > most) {
            reader.error(every->at, "every is below 0, or the step would end beyond the year 2200");
            step.every = Nanos(0);
        }
    }
    if (const YamlNode* upstream = node.find("upstream")) {
        step.request.upstream = read_upstream(reader, *upstream);
    }
    if (const YamlNode* expect = node.find("expect")) {
        step.expect = read_expectation(reader, *expect, context.rules.policy.get(), step.times);
    }
    for (const std::uint64_t n : {std::uint64_t{1}, step.times}) {
        if (const auto filled = fill_in(step.request, n); !filled.ok()) {
            reader.error(node.at, std::string(filled.status().message()));
            return;
        }
    }
}

void read_reload(const StepContext& context, const YamlNode& node, TestStep& step) {
    step.kind = TestStep::Kind::reload;
    step.title = "reload";
    step.rules = context.rules;
    if (auto policy = context.rules_reader.policy(*node.find("reload"))) {
        step.rules.policy = std::move(policy);
    }
    if (const YamlNode* directory = node.find("directory")) {
        if (auto loaded = context.rules_reader.directory(*directory)) {
            step.rules.directory = std::move(loaded);
        }
    }
    context.rules_reader.check_pair(step.rules);
}

void read_counters(const StepContext& context, const YamlNode& node, TestStep& step) {
    const YamlNode& state = *node.find("counters");
    const std::string word = state.is_scalar() ? state.scalar : "";
    if (word != "down" && word != "up") {
        context.reader.error(state.at, "counters are down or up");
    }
    step.kind = word == "down" ? TestStep::Kind::counters_down : TestStep::Kind::counters_up;
    step.title = cat("counters ", word);
}

void read_restart(const StepContext& context, const YamlNode& node, TestStep& step) {
    const bool restarts = context.reader.boolean(*node.find("restart"), "restart").value_or(true);
    step.kind = restarts ? TestStep::Kind::restart : TestStep::Kind::nothing;
    step.title = "restart";
}

void read_wall(const StepContext& context, const YamlNode& node, TestStep& step) {
    const YamlNode& wall = *node.find("wall");
    step.kind = TestStep::Kind::step_wall;
    step.by = read_span(context.reader, wall, "wall").value_or(Nanos(0));
    // Within 230 years each, as spans are, so that the sums hold.
    const Wall unstepped = context.start + step.when;
    const Nanos ahead = context.wall_ahead + step.by;
    if (ahead < earliest_instant - unstepped || ahead >= latest_instant - unstepped) {
        context.reader.error(wall.at,
                             "the wall clock would be before 1970 or beyond the year 2200");
        step.by = Nanos(0);
    }
    step.title = cat("wall clock ", decimal_seconds(step.by), " s");
}

// The first request's is looked at here, in its place; of steps with several the last one too.
void read_address(Reader& reader, const YamlNode& node, std::string& address) {
    const auto text = reader.text(node, "address");
    if (!text) {
        return;
    }
    if (const auto parsed = address_of(*text, 1); !parsed.ok()) {
        reader.error(node.at, std::string(parsed.status().message()));
        return;
    }
    address = *text;
}

void read_key(Reader& reader, const YamlNode& node, std::optional<std::string>& key) {
    if (node.kind == YamlNode::Kind::null || (node.is_scalar() && node.scalar == "none")) {
        key.reset();
        return;
    }
    const auto text = reader.text(node, "key");
    if (!text) {
        return;
    }
    if (text->empty() || !http::is_field_value(*text)) {
        reader.error(node.at, "a key is text without control characters, or none");
        return;
    }
    key = *text;
}

}  // namespace

void read_request_defaults(Reader& reader, const YamlNode& node, RequestDefaults& defaults) {
    if (const YamlNode* headers = node.find("headers")) {
        read_fields(reader, *headers, defaults.headers);
    }
    if (const YamlNode* address = node.find("address")) {
        read_address(reader, *address, defaults.address);
    }
    if (const YamlNode* key = node.find("key")) {
        read_key(reader, *key, defaults.key);
    }
}

std::optional<TestStep> read_step(const StepContext& context, const YamlNode& node) {
    struct Verb {
        std::string_view word;
        const KeyTable& keys;
        void (*read)(const StepContext&, const YamlNode&, TestStep&);
    };
    static const Verb verbs[] = {
        {"request", test_request_keys, read_request},
        {"reload", test_reload_keys, read_reload},
        {"counters", test_counters_keys, read_counters},
        {"restart", test_restart_keys, read_restart},
        {"wall", test_wall_keys, read_wall},
    };
    if (!context.reader.any_mapping(node, "a step")) {
        return std::nullopt;
    }
    for (const Verb& verb : verbs) {
        if (node.find(verb.word) == nullptr) {
            continue;
        }
        TestStep step;
        step.at = node.at;
        step.when = read_when(context, node);
        if (context.reader.mapping(node, verb.keys)) {
            verb.read(context, node, step);
        }
        return step;
    }
    std::vector<std::string_view> words;
    for (const Verb& verb : verbs) {
        words.push_back(verb.word);
    }
    for (const YamlNode::Entry& entry : node.entries) {
        if (!nearest_word(entry.key->scalar, words).empty()) {
            context.reader.unknown(entry.key->at, "key of a step", entry.key->scalar, words);
            return std::nullopt;
        }
    }
    context.reader.error(node.at, "a step needs request, reload, counters, restart or wall");
    return std::nullopt;
}

}  // namespace ration
