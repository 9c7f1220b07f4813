#include "workbench/test_file.h"

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "workbench/instant.h"
#include "workbench/rules_reader.h"
#include "workbench/step_reader.h"
#include "workbench/test_keys.h"
#include "workbench/yaml_values.h"

namespace ration {

namespace {

constexpr Wall default_start{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

// What cases take over from the file.
struct CaseDefaults {
    Rules rules;
    Wall start = default_start;
    RequestDefaults request;
};

class TestFileReader {
public:
    TestFileReader(const std::string& path, std::string_view text, Problems& problems)
        : reader_(path, problems), rules_reader_(path, text, problems), file_{path, {}} {}

    TestFile read(const YamlNode& root);

private:
    void read_defaults(const YamlNode& node, CaseDefaults& defaults);
    void read_case(const YamlNode& node, CaseDefaults defaults);
    void read_steps(const YamlNode& node, const CaseDefaults& defaults, TestCase& out);

    Reader reader_;
    RulesReader rules_reader_;
    bool file_has_policy_ = false;
    TestFile file_;
};

void TestFileReader::read_defaults(const YamlNode& node, CaseDefaults& defaults) {
    if (const YamlNode* policy = node.find("policy")) {
        defaults.rules.policy = rules_reader_.policy(*policy);
    }
    if (const YamlNode* directory = node.find("directory")) {
        defaults.rules.directory = rules_reader_.directory(*directory);
    }
    if (const YamlNode* at = node.find("at")) {
        const auto start = read_instant(reader_.text(*at, "at").value_or("0"));
        if (start.ok()) {
            defaults.start = *start;
        } else {
            reader_.error(at->at, std::string(start.status().message()));
        }
    }
    read_request_defaults(reader_, node, defaults.request);
}

void TestFileReader::read_steps(const YamlNode& node, const CaseDefaults& defaults, TestCase& out) {
    if (!node.is_sequence() || node.items.empty() || node.items.size() > max_test_steps) {
        reader_.error(node.at, cat("steps are a list of 1 to ", max_test_steps));
        return;
    }
    Nanos previous{0};
    Nanos wall_ahead{0};
    Rules rules = defaults.rules;
    for (const YamlNode* item : node.items) {
        auto step = read_step(
            {reader_, rules_reader_, defaults.request, defaults.start, previous, wall_ahead, rules},
            *item);
        if (!step) {
            continue;
        }
        previous = step->when + step->every * static_cast<std::int64_t>(step->times - 1);
        wall_ahead += step->by;
        if (step->kind == TestStep::Kind::reload) {
            rules = step->rules;
        }
        out.steps.push_back(*std::move(step));
    }
}

void TestFileReader::read_case(const YamlNode& node, CaseDefaults defaults) {
    if (!reader_.mapping(node, test_case_keys)) {
        return;
    }
    read_defaults(node, defaults);
    TestCase out;
    out.at = node.at;
    out.start = defaults.start;
    out.rules = defaults.rules;
    if (const YamlNode* name = node.find("name")) {
        out.name = reader_.text(*name, "a case's name").value_or("x");
        if (out.name.empty()) {
            reader_.error(name->at, "a case's name is empty");
        }
    }
    if (node.find("policy") == nullptr && !file_has_policy_) {
        reader_.error(node.at, "neither the case nor the file has a policy");
    }
    rules_reader_.check_pair(out.rules);
    if (const YamlNode* steps = node.find("steps")) {
        read_steps(*steps, defaults, out);
    }
    file_.cases.push_back(std::move(out));
}

TestFile TestFileReader::read(const YamlNode& root) {
    if (!reader_.mapping(root, test_file_keys)) {
        return std::move(file_);
    }
    CaseDefaults defaults;
    defaults.rules.directory = empty_directory();
    file_has_policy_ = root.find("policy") != nullptr;
    read_defaults(root, defaults);
    const YamlNode* cases = root.find("cases");
    if (cases == nullptr) {
        return std::move(file_);
    }
    if (!cases->is_sequence() || cases->items.empty() || cases->items.size() > max_test_cases) {
        reader_.error(cases->at, cat("cases are a list of 1 to ", max_test_cases));
        return std::move(file_);
    }
    for (const YamlNode* item : cases->items) {
        read_case(*item, defaults);
    }
    return std::move(file_);
}

void replace_number(std::string& text, const std::string& number) {
    constexpr std::string_view hole = "{n}";
    for (std::size_t at = text.find(hole); at != std::string::npos; at = text.find(hole, at)) {
        text.replace(at, hole.size(), number);
        at += number.size();
    }
}

}  // namespace

absl::StatusOr<IpAddress> address_of(std::string address, std::uint64_t n) {
    replace_number(address, cat(n));
    const auto parsed = IpAddress::parse(address);
    if (!parsed) {
        return absl::InvalidArgumentError(cat("'", address, "' is not an IP address"));
    }
    return *parsed;
}

absl::StatusOr<ServiceRequest> fill_in(const TestRequest& request, std::uint64_t n) {
    const std::string number = cat(n);
    const auto address = address_of(request.address, n);
    if (!address.ok()) {
        return address.status();
    }
    ServiceRequest filled{request.method, request.target,  request.headers, {},
                          request.body,   request.upstream};
    filled.peer.address = *address;
    replace_number(filled.target, number);
    replace_number(filled.body, number);
    for (auto& [name, value] : filled.headers) {
        replace_number(value, number);
    }
    return filled;
}

std::optional<TestFile> parse_test_file(const std::string& path, std::string_view text,
                                        Problems& problems) {
    const auto document = YamlDocument::parse(path, text, problems);
    if (document == nullptr || !problems.ok()) {
        return std::nullopt;
    }
    TestFile file = TestFileReader(path, text, problems).read(document->root());
    return problems.ok() ? std::optional(std::move(file)) : std::nullopt;
}

std::optional<TestFile> load_test_file(const std::string& path, Problems& problems) {
    std::string text;
    return read_file(path, text, problems) ? parse_test_file(path, text, problems) : std::nullopt;
}

}  // namespace ration
