// An empty value, as a script's unset variable leaves it (`--retries "$N"`), is wrong use: what is
// asked for is not the default, and not nothing at all. One place for all commands, so that no
// option has to think of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace ration {

// Every option and argument of `app` and its commands refuses an empty value, but for the texts
// that may well be empty: a body, "no proxy", "no name", "from the beginning"; and a number that is
// not written in decimal digits. To be called when all commands are there.
void refuse_odd_values(CLI::App& app);

// The words, with `--name=` as `--name` and an empty word, and so a list of nothing (`--name ,`):
// else the parser would take the word behind it for the value. Known options of `app` and its
// commands only.
[[nodiscard]] std::vector<std::string> spell_empty_values(const CLI::App& app,
                                                          std::span<const char* const> words);

}  // namespace ration
