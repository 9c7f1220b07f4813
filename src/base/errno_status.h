// What the system said, as a status. absl::ErrnoToStatus says the same, but builds its table of
// texts behind a lock that Debian's build hides from the thread sanitizer.
//
//   return errno_status(errno, cat("cannot listen on ", address));  // "...: Address already in
//   use"
#pragma once

#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "base/text.h"

namespace ration {

[[nodiscard]] inline absl::Status errno_status(int error, std::string_view what) {
    return {absl::ErrnoToStatusCode(error), cat(what, ": ", std::strerror(error))};
}

}  // namespace ration
