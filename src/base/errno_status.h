// What the system said, in words and as a status. absl::ErrnoToStatus says the same, but builds its
// table of texts behind a lock that Debian's build hides from the thread sanitizer.
//
//   return errno_status(errno, cat("cannot listen on ", address));  // "...: Address already in
//   use"
#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "base/text.h"

namespace ration {

// Like std::strerror, on any thread.
[[nodiscard]] inline std::string errno_text(int error) {
    return std::generic_category().message(error);
}

[[nodiscard]] inline absl::Status errno_status(int error, std::string_view what) {
    return {absl::ErrnoToStatusCode(error), cat(what, ": ", errno_text(error))};
}

}  // namespace ration
