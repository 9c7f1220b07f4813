// The first word of a command line that means nothing: no command, or no option of its command.
//
// CLI11 first misses what is required, and then says so instead of naming the slip. Thread rule:
// one thread.
#pragma once

#include <span>
#include <string>

#include "CLI/CLI.hpp"

namespace ration {

// Empty when every word has a meaning, else the message: "ration check: no option '--directry'; did
// you mean '--directory'?". `words` are those behind the program's name.
[[nodiscard]] std::string unknown_word(const CLI::App& app, std::span<const char* const> words);

}  // namespace ration
