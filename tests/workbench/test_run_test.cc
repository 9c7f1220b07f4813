#include "workbench/test_run.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ration {
namespace {

constexpr std::string_view preamble = R"(policy:
  policy: small
  routes: {thing: GET /thing}
  limits:
    - {name: rate, per: [address], token_bucket: 2/s}
    - {name: long, per: [address], token_bucket: 100/h}
cases:
)";

struct Outcome {
    TestTally tally;
    std::string report;
    std::string problems;
};

Outcome run(std::string_view cases) {
    Outcome outcome;
    Problems problems;
    const std::string text = std::string(preamble) + std::string(cases);
    const auto file = parse_test_file("t.test.yaml", text, problems);
    for (const Problem& problem : problems.errors()) {
        outcome.problems += problem.text() + "\n";
    }
    if (file) {
        std::ostringstream report;
        outcome.tally = run_test_file(*file, in_process(), report);
        outcome.report = report.str();
    }
    return outcome;
}

TEST(TestRun, WhatCameOutAsExpectedSaysNothing) {
    const Outcome outcome = run(R"(  - name: both
    steps:
      - {request: GET /thing, times: 3, expect: {admitted: 2, refused: 1, status: [200, 200, 429]}}
      - {at: 0.5s, request: GET /thing, expect: {status: 200, headers: {Retry-After: absent}}}
)");
    EXPECT_EQ(outcome.problems, "");
    EXPECT_EQ(outcome.report, "");
    EXPECT_EQ(summary(outcome.tally), "1 passed, 0 failed");
}

TEST(TestRun, ADifferenceIsShownWithPlaceRequestAndLevels) {
    const Outcome outcome = run(R"(  - name: too hopeful
    steps:
      - request: GET /thing
        times: 4
        every: 100ms
        headers: {X-Note: "n{n}"}
        expect: {status: 200, headers: {Retry-After: absent}, admitted: 4}
  - name: fine
    steps:
      - {request: GET /thing}
)");
    EXPECT_EQ(outcome.problems, "");
    EXPECT_EQ(outcome.report,
              R"(t.test.yaml:10:9: case 'too hopeful', step 1 at 0.2 s: GET /thing, request 3 of 4
    from 192.0.2.1, X-Note: n3
    status
        expected  200
        got       429
    header Retry-After
        expected  absent
        got       1
    limit rate (2/s): 0 left of 2, 2 in use, wait 0.3 s
    limit long (100/h): 98 left of 100, 2 in use
    1 more of the step's requests differ
t.test.yaml:10:9: case 'too hopeful', step 1 at 0 s: GET /thing
    how many of 4 were admitted
        expected  4
        got       2
    limit rate (2/s): 0 left of 2, 2 in use, wait 0.2 s
    limit long (100/h): 98 left of 100, 2 in use
)");
    EXPECT_EQ(summary(outcome.tally), "1 passed, 1 failed");
}

TEST(TestRun, ABodyIsComparedToTheLetterOrByItsMembers) {
    const Outcome outcome = run(R"(  - name: bodies
    steps:
      - request: GET /thing
        upstream: {body: {a: {b: 1, c: "1"}, d: [1, 2]}}
        expect: {body: '{"a":{"b":1,"c":"1"},"d":[1,2]}'}
      - request: GET /thing
        upstream: {body: {a: {b: 1, c: "1"}, d: [1, 2]}}
        expect: {body: {a: {c: "1"}, d: [1, 2]}}
      - {at: 1h, request: GET /thing, upstream: {body: {a: 1}}, expect: {body: {a: "1"}}}
      - {at: 2h, request: GET /thing, upstream: {body: text}, expect: {body: {a: 1}}}
      - {at: 3h, request: GET /thing, upstream: {body: {a: 1}}, expect: {body: {b: 1}}}
)");
    EXPECT_EQ(outcome.problems, "");
    EXPECT_NE(outcome.report.find("body, a: expected \"1\", got 1\n"), std::string::npos)
        << outcome.report;
    EXPECT_NE(outcome.report.find("body, the body is not JSON\n"), std::string::npos);
    EXPECT_NE(outcome.report.find("body, b: expected 1, but there is no such member\n"),
              std::string::npos);
    EXPECT_EQ(outcome.report.find("step 1"), std::string::npos);
    EXPECT_EQ(outcome.report.find("step 2"), std::string::npos);
}

TEST(TestRun, AnyBodyMayStandAnywhereInAListOfBodies) {
    const Outcome outcome = run(R"(  - name: lists
    steps:
      - {request: GET /thing, times: 2, upstream: {body: {a: 1}}, expect: {body: [any, {a: 1}]}}
      - {at: 1h, request: GET /thing, times: 2, upstream: {body: {a: 1}}, expect: {body: [{a: 1}, any]}}
      - {at: 2h, request: GET /thing, times: 2, upstream: {body: {a: 1}}, expect: {body: [any, any]}}
      - {at: 3h, request: GET /thing, times: 2, upstream: {body: {a: 1}}, expect: {body: [any, {a: 2}]}}
)");
    EXPECT_EQ(outcome.problems, "");
    EXPECT_NE(outcome.report.find("body, a: expected 2, got 1\n"), std::string::npos)
        << outcome.report;
    for (const char* passed : {"step 1", "step 2", "step 3"}) {
        EXPECT_EQ(outcome.report.find(passed), std::string::npos) << outcome.report;
    }
    EXPECT_NE(run(R"(  - name: mixed
    steps:
      - {request: GET /thing, times: 2, expect: {body: [text, {a: 1}]}}
)")
                  .problems.find("bodies of one step are all text or all mappings"),
              std::string::npos);
}

TEST(TestRun, AHeaderThatStandsTwiceIsNotOneThatStandsOnce) {
    const Outcome outcome = run(R"(  - name: twice
    steps:
      - request: GET /thing
        upstream: {headers: {X-A: [one, two]}}
        expect: {headers: {X-A: one}}
)");
    EXPECT_NE(outcome.report.find("got       one | two (2 fields)"), std::string::npos)
        << outcome.report;
}

struct WrongRow {
    const char* cases;
    const char* problem;
};

void PrintTo(const WrongRow& row, std::ostream* out) {
    *out << row.problem;
}

class WrongFileTest : public ::testing::TestWithParam<WrongRow> {};

TEST_P(WrongFileTest, IsToldWithItsPlace) {
    EXPECT_EQ(run(GetParam().cases).problems, GetParam().problem);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, WrongFileTest,
    ::testing::Values(
        WrongRow{"  - {name: x, steps: [{request: GET /thing, expcet: {status: 200}}]}\n",
                 "t.test.yaml:8:45: unknown key of a request step 'expcet'; did you mean "
                 "'expect'?\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /thing, expect: {stauts: 200}}]}\n",
                 "t.test.yaml:8:54: unknown key of an expectation 'stauts'; did you mean "
                 "'status'?\n"},
        WrongRow{"  - {name: x, steps: [{at: 1s, requst: GET /thing}]}\n",
                 "t.test.yaml:8:32: unknown key of a step 'requst'; did you mean 'request'?\n"},
        WrongRow{"  - {name: x, steps: [{at: 1s, ask: GET /thing}]}\n",
                 "t.test.yaml:8:23: a step needs request, reload, counters, restart or wall\n"},
        WrongRow{"  - {name: x, steps: [{request: GET}]}\n",
                 "t.test.yaml:8:33: a request is a method and a path, such as GET /v1/quote\n"},
        WrongRow{"  - {name: x, steps: [{at: 2s, request: GET /}, {at: 1s, request: GET /}]}\n",
                 "t.test.yaml:8:54: before the step above, which is at 2 s\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, times: 2, expect: {status: [200]}}]}\n",
                 "t.test.yaml:8:67: a list of 1 expected values, but the step has 2 requests\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, address: 'nowhere'}]}\n",
                 "t.test.yaml:8:49: 'nowhere' is not an IP address\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, times: 100001}]}\n",
                 "t.test.yaml:8:47: times is a whole number from 1 to 100000, not '100001'\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, expect: {outcome: admited}}]}\n",
                 "t.test.yaml:8:58: unknown outcome 'admited'; did you mean 'admitted'?\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, expect: {rule: rat}}]}\n",
                 "t.test.yaml:8:55: unknown rule 'rat'; did you mean 'rate'?\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, times: 2, expect: {rule: [any, lng]}}]}\n",
                 "t.test.yaml:8:71: unknown rule 'lng'; did you mean 'long'?\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, expect: {remaining: {lung: 1}}}]}\n",
                 "t.test.yaml:8:61: unknown limit 'lung'; did you mean 'long'?\n"},
        WrongRow{"  - {name: x, steps: [{request: GET /, expect: {used: {elsewhere: none}}}]}\n",
                 "t.test.yaml:8:56: unknown limit 'elsewhere'\n"},
        WrongRow{"  - {name: x, steps: [{counters: off}]}\n",
                 "t.test.yaml:8:34: counters are down or up\n"},
        WrongRow{"  - {name: x, steps: []}\n",
                 "t.test.yaml:8:22: steps are a list of 1 to 10000\n"},
        WrongRow{"  - {name: x, policy: {policy: y}, steps: [{request: GET /}]}\n",
                 "t.test.yaml:8:23: write it as a block that starts on a line of its own\n"}));

// Every key of the language, each with a value of another type and each with one out of range.
struct WrongValueRow {
    const char* step;  // written into one step, or with "case:" in front into the case
    const char* problem;
};

void PrintTo(const WrongValueRow& row, std::ostream* out) {
    *out << row.step;
}

class WrongValueTest : public ::testing::TestWithParam<WrongValueRow> {};

TEST_P(WrongValueTest, IsToldWithItsPlace) {
    std::string text = GetParam().step;
    constexpr std::string_view of_the_case = "case:";
    if (text.starts_with(of_the_case)) {
        text = "  - {steps: [{request: GET /}], " + text.substr(of_the_case.size()) + "}\n";
    } else {
        text = "  - {name: x, steps: [{" + text + "}]}\n";
    }
    EXPECT_EQ(run(text).problems, std::string("t.test.yaml:") + GetParam().problem + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    Rows, WrongValueTest,
    ::testing::Values(
        WrongValueRow{"case:name: [x]", "8:39: a case's name is text, not a list"},
        WrongValueRow{"case:name: ''", "8:39: a case's name is empty"},
        WrongValueRow{"case:name: x, policy: [x]",
                      "8:50: a policy is a path, or the policy itself"},
        WrongValueRow{"case:name: x, policy: /nowhere.yaml",
                      "8:50: /nowhere.yaml cannot be opened for reading"},
        WrongValueRow{"case:name: x, policy: /", "8:50: / is a directory, not a file"},
        WrongValueRow{"case:name: x, directory: [x]",
                      "8:53: a directory is a path, or the directory itself"},
        WrongValueRow{"case:name: x, directory: /nowhere.yaml",
                      "8:53: /nowhere.yaml cannot be opened for reading"},
        WrongValueRow{"case:name: x, at: [1]", "8:46: at is text, not a list"},
        WrongValueRow{"case:name: x, at: soon",
                      "8:46: \"soon\" is neither a date such as 2026-03-01T12:00:00.25Z nor "
                      "seconds since 1970"},
        WrongValueRow{"case:name: x, at: 2200-01-01T00:00:00Z",
                      "8:46: \"2200-01-01T00:00:00Z\" is not between the years 1970 and 2200"},
        WrongValueRow{"case:name: x, key: [k]", "8:47: key is text, not a list"},
        WrongValueRow{"case:name: x, key: ''",
                      "8:47: a key is text without control characters, or none"},
        WrongValueRow{"case:name: x, address: {a: b}", "8:51: address is text, not a mapping"},
        WrongValueRow{"case:name: x, address: 1.2.3", "8:51: '1.2.3' is not an IP address"},
        WrongValueRow{"case:name: x, headers: text", "8:51: headers is a mapping, not text"},
        WrongValueRow{"case:name: x, headers: {A b: ~}",
                      "8:52: \"A b\" is not the name of a header"},
        WrongValueRow{"case:name: x, headers: {A: {b: c}}",
                      "8:55: the value of header A is text, not a mapping"},
        WrongValueRow{"request: [GET /]", "8:33: request is text, not a list"},
        WrongValueRow{"request: GET /a b",
                      "8:33: a request is a method and a path, such as GET /v1/quote"},
        WrongValueRow{"request: 'G(T /a'",
                      "8:33: a request is a method and a path, such as GET /v1/quote"},
        WrongValueRow{"request: GET /, at: [1s]", "8:44: at is text, not a list"},
        WrongValueRow{"request: GET /, at: -1s", "8:44: before the step above, which is at 0 s"},
        WrongValueRow{"request: GET /, key: {a: b}", "8:45: key is text, not a mapping"},
        WrongValueRow{"request: GET /, key: \"a\\nb\"",
                      "8:45: a key is text without control characters, or none"},
        WrongValueRow{"request: GET /, address: ~", "8:49: address is text, not nothing"},
        WrongValueRow{"request: GET /, times: 2, address: '::fff{n}::1::'",
                      "8:59: '::fff1::1::' is not an IP address"},
        WrongValueRow{"request: GET /, times: 256, address: '10.0.0.{n}'",
                      "8:23: '10.0.0.256' is not an IP address"},
        WrongValueRow{"request: GET /, headers: [a]", "8:49: headers is a mapping, not a list"},
        WrongValueRow{"request: GET /, times: 0",
                      "8:47: times is a whole number from 1 to 100000, not '0'"},
        WrongValueRow{"request: GET /, times: many",
                      "8:47: times is a whole number from 1 to 100000, not 'many'"},
        WrongValueRow{"request: GET /, every: -1s",
                      "8:47: every is below 0, or the step would end beyond the year 2200"},
        WrongValueRow{"request: GET /, every: [1s]", "8:47: every is text, not a list"},
        WrongValueRow{"request: GET /, upstream: 200",
                      "8:50: an upstream answer is a mapping, not text"},
        WrongValueRow{"request: GET /, upstream: {status: 199}",
                      "8:59: the upstream's status is a whole number from 200 to 599, not '199'"},
        WrongValueRow{"request: GET /, upstream: {status: 600}",
                      "8:59: the upstream's status is a whole number from 200 to 599, not '600'"},
        WrongValueRow{"request: GET /, upstream: {headers: {A: \"b\\nc\"}}",
                      "8:64: the header A has a control character"},
        WrongValueRow{"request: GET /, upstream: {takes: -1s}",
                      "8:58: takes is from 0 to 366d, or never"},
        WrongValueRow{"request: GET /, upstream: {takes: 367d}",
                      "8:58: takes is from 0 to 366d, or never"},
        WrongValueRow{
            "request: GET /, upstream: {takes: soon}",
            "8:58: \"soon\" is not a span of time such as 1.5s, 250ms, 2min, 1h30m, 3d or 0:01:00"},
        WrongValueRow{"request: GET /, upstream: {probe: no}",
                      "8:58: the answer to a probe is a mapping, not text"},
        WrongValueRow{"request: GET /, upstream: {probe: {probe: {status: 200}}}",
                      "8:59: unknown key of the answer to a probe 'probe'"},
        WrongValueRow{"request: GET /, upstream: {probe: {status: 99}}",
                      "8:67: the upstream's status is a whole number from 200 to 599, not '99'"},
        WrongValueRow{"request: GET /, expect: 200", "8:48: an expectation is a mapping, not text"},
        WrongValueRow{"request: GET /, expect: {status: 99}",
                      "8:57: an expected status is a whole number from 200 to 599, not '99'"},
        WrongValueRow{"request: GET /, expect: {status: 600}",
                      "8:57: an expected status is a whole number from 200 to 599, not '600'"},
        WrongValueRow{"request: GET /, expect: {status: ok}",
                      "8:57: an expected status is a whole number from 200 to 599, not 'ok'"},
        WrongValueRow{"request: GET /, times: 2, expect: {status: [200, {a: b}]}",
                      "8:73: an expected value is text, not a mapping"},
        WrongValueRow{"request: GET /, expect: {status: []}",
                      "8:57: a list of 0 expected values, but the step has 1 requests"},
        WrongValueRow{"request: GET /, expect: {outcome: none}", "8:58: unknown outcome 'none'"},
        WrongValueRow{"request: GET /, expect: {outcome: ~}",
                      "8:58: an expected value is text, not nothing"},
        WrongValueRow{"request: GET /, expect: {rule: {a: b}}",
                      "8:55: an expected value is text, not a mapping"},
        WrongValueRow{"request: GET /, expect: {wait: -1}", "8:55: a wait is not below 0"},
        WrongValueRow{"request: GET /, expect: {wait: soon}",
                      "8:55: \"soon\" is not a span of time such as 1.5s, 250ms, 2min, 1h30m, 3d "
                      "or 0:01:00, or none"},
        WrongValueRow{"request: GET /, expect: {wait: {a: b}}",
                      "8:55: an expected value is text, not a mapping"},
        WrongValueRow{"request: GET /, expect: {headers: [a]}",
                      "8:58: expected headers is a mapping, not a list"},
        WrongValueRow{"request: GET /, expect: {headers: {A: ~}}",
                      "8:62: a header is expected to have a value, or absent, or present"},
        WrongValueRow{"request: GET /, expect: {headers: {A b: c}}",
                      "8:59: \"A b\" is not the name of a header"},
        WrongValueRow{"request: GET /, expect: {body: []}", "8:55: an empty list expects nothing"},
        WrongValueRow{"request: GET /, expect: {remaining: 5}",
                      "8:60: what limits have left is a mapping, not text"},
        WrongValueRow{"request: GET /, expect: {remaining: {rate: -1}}",
                      "8:67: what a limit counts is a whole number from 0 to 4294967295, not '-1'"},
        WrongValueRow{
            "request: GET /, expect: {remaining: {rate: 4294967296}}",
            "8:67: what a limit counts is a whole number from 0 to 4294967295, not '4294967296'"},
        WrongValueRow{
            "request: GET /, expect: {used: {rate: 1.5}}",
            "8:62: what a limit counts is a whole number from 0 to 4294967295, not '1.5'"},
        WrongValueRow{"request: GET /, expect: {sent: /a}",
                      "8:55: what is sent is a mapping, not text"},
        WrongValueRow{"request: GET /, expect: {sent: {path: [a, b]}}",
                      "8:62: a list of 2 expected values, but the step has 1 requests"},
        WrongValueRow{"request: GET /, expect: {sent: {headers: none}}",
                      "8:65: headers that were sent is a mapping, not text"},
        WrongValueRow{"request: GET /, expect: {sent: {headers: {A: ~}}}",
                      "8:69: a header is expected to have a value, or absent, or present"},
        WrongValueRow{"request: GET /, expect: {admitted: 2}",
                      "8:59: the number of admitted is a whole number from 0 to 1, not '2'"},
        WrongValueRow{"request: GET /, expect: {refused: yes}",
                      "8:58: the number of refused is a whole number from 0 to 1, not 'yes'"},
        WrongValueRow{"request: GET /, expect: {replayed: -1}",
                      "8:59: the number of replayed is a whole number from 0 to 1, not '-1'"},
        WrongValueRow{"request: GET /, expect: {lost: [1]}",
                      "8:55: the number of lost is a whole number from 0 to 1, not a list"},
        WrongValueRow{"reload: [x]", "8:32: a policy is a path, or the policy itself"},
        WrongValueRow{"reload: /nowhere.yaml", "8:32: /nowhere.yaml cannot be opened for reading"},
        WrongValueRow{"reload: /", "8:32: / is a directory, not a file"},
        WrongValueRow{"counters: [up]", "8:34: counters are down or up"},
        WrongValueRow{"counters: ~", "8:34: counters are down or up"},
        WrongValueRow{"restart: maybe", "8:33: restart is true or false, not 'maybe'"},
        WrongValueRow{"restart: ~", "8:33: restart is true or false, not nothing"},
        WrongValueRow{"restart: [true]", "8:33: restart is true or false, not a list"},
        WrongValueRow{
            "wall: abc",
            "8:30: \"abc\" is not a span of time such as 1.5s, 250ms, 2min, 1h30m, 3d or 0:01:00"},
        WrongValueRow{"wall: [1s]", "8:30: wall is text, not a list"},
        WrongValueRow{"wall: 64000d",
                      "8:30: the wall clock would be before 1970 or beyond the year 2200"},
        WrongValueRow{"wall: -21000d",
                      "8:30: the wall clock would be before 1970 or beyond the year 2200"}));

TEST(TestFile, WallClockStepsAddUpToNoMoreThanAClockHolds) {
    const Outcome outcome = run(R"(  - name: x
    steps:
      - {wall: -20000d}
      - {wall: -400d}
      - {wall: -400d}
)");
    EXPECT_EQ(outcome.problems,
              "t.test.yaml:12:16: the wall clock would be before 1970 or beyond the year 2200\n");
}

TEST(TestFile, AFileThatCannotBeReadIsToldWhereItIsNamed) {
    const Outcome outcome = run(R"(  - name: x
    steps:
      - {reload: nowhere.yaml, directory: nobody.yaml}
)");
    EXPECT_EQ(outcome.problems,
              "t.test.yaml:10:18: nowhere.yaml cannot be opened for reading\n"
              "t.test.yaml:10:43: nobody.yaml cannot be opened for reading\n");
}

TEST(TestRun, ARestartThatIsFalseIsNone) {
    const Outcome outcome = run(R"(  - name: x
    steps:
      - {request: GET /thing, times: 2, expect: {admitted: 2}}
      - {restart: false}
      - {request: GET /thing, expect: {status: 429}}
      - {restart: true}
      - {request: GET /thing, expect: {status: 200}}
)");
    EXPECT_EQ(outcome.problems, "");
    EXPECT_EQ(outcome.report, "");
}

TEST(TestFile, AProblemInAPolicyWrittenInPlaceHasItsPlaceInTheFile) {
    const Outcome outcome = run(R"(  - name: x
    policy:
      policy: other
      routes: {thing: GET /thing}
      limits:
        - {name: rate, per: [address], token_bukcet: 2/s}
    steps:
      - {request: GET /thing}
)");
    EXPECT_EQ(outcome.problems.rfind("t.test.yaml:13:", 0), 0U) << outcome.problems;
}

// Of the policy in force at the step, and of every sort of rule.
TEST(TestFile, RulesOfThePolicyInForceCanBeExpected) {
    const Outcome outcome = run(R"yaml(  - name: x
    policy:
      policy: other
      routes: {thing: GET /thing, make: POST /thing}
      limits:
        - {name: first, per: [], token_bucket: 9/s}
      strikes:
        - {name: strike, per: [address], failures: 5/min, block: 1 min}
      ceilings:
        - {name: ceiling, routes: [make], per: [], at_most: 9 per day in Etc/UTC}
      quotas:
        - {name: quota, per: [workspace], at_most: 1, up: {make: body.id}}
    steps:
      - {request: GET /thing, expect: {rule: none, remaining: {first: 8, strike: any}}}
      - {request: GET /thing, times: 3, expect: {rule: [any, any, none]}}
      - request: GET /nothing
        expect: {rule: [none]}
      - reload:
          policy: late
          routes: {thing: GET /thing}
          limits:
            - {name: second, per: [], token_bucket: 1/s}
      - {request: GET /thing, expect: {used: {second: 1}}}
      - {request: GET /thing, expect: {rule: second}}
      - {request: GET /thing, expect: {rule: first}}
)yaml");
    EXPECT_EQ(outcome.problems, "t.test.yaml:32:46: unknown rule 'first'\n");
}

TEST(TestFile, WordsOfThePolicyAreSeenWithTheCasesDirectory) {
    const std::string policy = R"(    policy:
      policy: other
      routes: {thing: GET /thing}
      identify: {credentials: {key: {bearer: k_*}}}
      limits:
        - {name: first, per: [users], token_bucket: 9/s}
    steps: [{request: GET /thing}]
)";
    EXPECT_EQ(run("  - name: x\n" + policy).problems,
              "t.test.yaml:14:31: unknown word 'users'; did you mean 'user'? (or give "
              "the directory that has it)\n");
    EXPECT_EQ(run("  - name: x\n    directory:\n      credentials:\n        k_1: {kind: key, "
                  "users: w}\n" +
                  policy)
                  .problems,
              "");
}

bool can_be_read(std::string_view before, std::string_view repeated, std::size_t times) {
    std::string text = std::string(preamble) + std::string(before);
    for (std::size_t i = 0; i < times; ++i) {
        text += repeated;
    }
    Problems problems;
    return parse_test_file("t.test.yaml", text, problems).has_value();
}

TEST(TestFile, CasesAndStepsHaveABound) {
    const char* one_case = "  - {name: x, steps: [{restart: true}]}\n";
    EXPECT_TRUE(can_be_read("", one_case, max_test_cases));
    EXPECT_FALSE(can_be_read("", one_case, max_test_cases + 1));
    const char* steps = "  - name: x\n    steps:\n";
    EXPECT_TRUE(can_be_read(steps, "      - {restart: true}\n", max_test_steps));
    EXPECT_FALSE(can_be_read(steps, "      - {restart: true}\n", max_test_steps + 1));
}

TEST(TestFile, AStepEndsBeforeTheYear2200) {
    EXPECT_EQ(run("  - {name: x, steps: [{at: 170 d, request: GET /}]}\n").problems,
              "t.test.yaml:8:28: \"170 d\" is not a span of time such as 1.5s, 250ms, 2min, 1h30m, "
              "3d or 0:01:00, or a date\n");
    EXPECT_EQ(run("  - {name: x, steps: [{at: 65000d, request: GET /}]}\n").problems,
              "t.test.yaml:8:28: beyond the year 2200\n");
    EXPECT_EQ(run("  - {name: x, steps: [{request: GET /, times: 3, every: 30000d}]}\n").problems,
              "t.test.yaml:8:57: every is below 0, or the step would end beyond the year 2200\n");
}

TEST(FillIn, NumbersTheRequestsOfAStep) {
    TestRequest request{"GET", "/b/{n}/x?{n}", {{"X", "{n}{n}"}}, "10.0.0.{n}", "b{n}", {}};
    const auto filled = fill_in(request, 12);
    ASSERT_TRUE(filled.ok());
    EXPECT_EQ(filled->target, "/b/12/x?12");
    EXPECT_EQ(filled->headers[0].second, "1212");
    EXPECT_EQ(filled->body, "b12");
    EXPECT_EQ(filled->peer.address, IpAddress::parse("10.0.0.12"));
    EXPECT_FALSE(fill_in(request, 256).ok());
}

}  // namespace
}  // namespace ration
