// URLs as a terminal, a log of CI or a screenshot may show them: the values of a query, where keys
// and tokens stand in many APIs, are left out, as are a user's name and password and a fragment.
#pragma once

#include <string>
#include <string_view>

namespace ration {

// "https://api.example/v1/things?access_token=…&page=…"; a query's word without "=" is all "…".
[[nodiscard]] std::string shown_url(std::string_view url);

// A sentence, each URL in it (and each path that begins a word) as above.
[[nodiscard]] std::string shown_text(std::string_view text);

}  // namespace ration
