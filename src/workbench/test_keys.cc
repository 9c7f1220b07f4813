#include "workbench/test_keys.h"

#include <array>

namespace ration {

namespace {

constexpr std::array file_table{
    Key{"policy", "", "A policy's path from this file, or the policy itself."},
    Key{"directory", "", "A directory's path from this file, or the directory itself."},
    Key{"at", "", "When the cases start."},
    Key{"key", "", "Bearer token of requests that say nothing else."},
    Key{"address", "", "Peer address of requests that say nothing else."},
    Key{"headers", "", "Headers of every request."},
    Key{"cases", "", "The cases.", true},
};

constexpr std::array case_table{
    Key{"name", "", "What the case shows.", true},
    Key{"policy", "", "Instead of the file's."},
    Key{"directory", "", "Instead of the file's."},
    Key{"at", "", "When the case starts."},
    Key{"key", "", "Bearer token of requests that say nothing else."},
    Key{"address", "", "Peer address of requests that say nothing else."},
    Key{"headers", "", "Headers of every request."},
    Key{"steps", "", "What happens, in order of time.", true},
};

constexpr std::array request_table{
    Key{"at", "", "When, from the case's start."},
    Key{"request", "", "Method and path.", true},
    Key{"key", "", "Bearer token, or none."},
    Key{"address", "", "Peer address."},
    Key{"headers", "", "More headers."},
    Key{"body", "", "Text, or a value that becomes JSON."},
    Key{"times", "", "How many such requests."},
    Key{"every", "", "Time between two of them."},
    Key{"upstream", "", "What the upstream answers."},
    Key{"expect", "", "What must come out."},
};

constexpr std::array reload_table{Key{"at", "", "When."},
                                  Key{"reload", "", "The policy that comes into force.", true},
                                  Key{"directory", "", "The directory that comes with it."}};
constexpr std::array counters_table{Key{"at", "", "When."},
                                    Key{"counters", "", "down or up.", true}};
constexpr std::array restart_table{Key{"at", "", "When."},
                                   Key{"restart", "", "true; false: nothing happens.", true}};
constexpr std::array wall_table{Key{"at", "", "When."},
                                Key{"wall", "", "How far the wall clock steps.", true}};

constexpr std::array upstream_table{
    Key{"status", "", "200 to 599."},
    Key{"headers", "", "Its headers."},
    Key{"body", "", "Its body."},
    Key{"takes", "", "How long it takes, or never."},
    Key{"probe", "", "What it answers when it is asked about the request's key; 404 else."},
};

constexpr std::array probe_table{
    Key{"status", "", "200 to 599."},
    Key{"headers", "", "Its headers."},
    Key{"body", "", "Its body."},
    Key{"takes", "", "How long it takes, or never."},
};

constexpr std::array expect_table{
    Key{"status", "", "The status."},
    Key{"outcome", "", "admitted, refused, replayed or lost."},
    Key{"rule", "", "The binding rule, or none."},
    Key{"wait", "", "The exact wait, or none."},
    Key{"headers", "", "Headers of the answer; absent and present are words."},
    Key{"body", "", "Text: the body to the letter; a mapping: members of the JSON body."},
    Key{"remaining", "", "What limits have left."},
    Key{"used", "", "What limits have in use."},
    Key{"sent", "", "What the upstream got."},
    Key{"admitted", "", "How many were admitted."},
    Key{"refused", "", "How many were refused."},
    Key{"replayed", "", "How many were replayed."},
    Key{"lost", "", "How many were lost."},
};

constexpr std::array sent_table{Key{"path", "", "Path and query; none: it was not asked."},
                                Key{"headers", "", "Headers that it got."}};

}  // namespace

const KeyTable test_file_keys{"test_file", "a test file", file_table};
const KeyTable test_case_keys{"test_case", "a case", case_table};
const KeyTable test_request_keys{"test_request", "a request step", request_table};
const KeyTable test_reload_keys{"test_reload", "a reload step", reload_table};
const KeyTable test_counters_keys{"test_counters", "a counters step", counters_table};
const KeyTable test_restart_keys{"test_restart", "a restart step", restart_table};
const KeyTable test_wall_keys{"test_wall", "a wall step", wall_table};
const KeyTable test_upstream_keys{"test_upstream", "an upstream answer", upstream_table};
const KeyTable test_probe_keys{"test_probe", "the answer to a probe", probe_table};
const KeyTable test_expect_keys{"test_expect", "an expectation", expect_table};
const KeyTable test_sent_keys{"test_sent", "what is sent", sent_table};

}  // namespace ration
