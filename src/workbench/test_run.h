// Running test cases against a service, and saying what differed.
//
// Thread rule: one thread. A case that could not be run at all (the service gave an error) fails
// with that error; a case that a kind of service cannot run is skipped with the reason.
//
//   TestTally tally = run_test_file(file, in_process(), std::cout);
//   tally.failed == 0
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "workbench/test_bed.h"
#include "workbench/test_file.h"

namespace ration {

// How cases get their service.
struct TestBedKind {
    // Empty, or why the case cannot run on this kind of service.
    std::function<std::string(const TestCase&)> cannot_run;
    std::function<absl::StatusOr<std::unique_ptr<TestBed>>(const TestCase&, TestBed::Sink)> start;
};

// The engine on a virtual clock.
[[nodiscard]] TestBedKind in_process();

struct TestTally {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t skipped = 0;
};

// Runs every case of the file; failures and skipped cases are described in `report`.
[[nodiscard]] TestTally run_test_file(const TestFile& file, const TestBedKind& kind,
                                      std::ostream& report);

// "12 passed, 1 failed", and ", 3 skipped" when there are any.
[[nodiscard]] std::string summary(const TestTally& tally);

}  // namespace ration
