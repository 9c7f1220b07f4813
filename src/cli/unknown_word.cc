#include "cli/unknown_word.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "policy/problems.h"

namespace ration {
namespace {

std::string full_name(const CLI::App& app) {
    return app.get_parent() == nullptr ? app.get_name()
                                       : cat(full_name(*app.get_parent()), " ", app.get_name());
}

// "; did you mean 'x'?", or what there is.
std::string hint(std::string_view word, const std::vector<std::string>& names) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    if (const std::string_view meant = nearest_word(word, known); !meant.empty()) {
        return cat("; did you mean '", meant, "'?");
    }
    std::string all = "; there are";
    for (const std::string& name : names) {
        all += cat(&name == &names.front() ? " " : ", ", name);
    }
    return all;
}

std::string no_command(const CLI::App& app, std::string_view word) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands(nullptr)) {
        names.push_back(command->get_name());
    }
    return cat(full_name(app), ": no command '", word, "'", hint(word, names));
}

std::string no_option(const CLI::App& app, std::string_view word) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back(cat("--", name));
        }
    }
    return cat(full_name(app), ": no option '", word, "'", hint(word, names));
}

// "--name=value" is "--name", "-nvalue" is "-n".
std::string option_name(std::string_view word) {
    return std::string(word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2));
}

}  // namespace

std::string unknown_word(const CLI::App& app, std::span<const char* const> words) {
    const CLI::App* command = &app;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == "--") {
            break;
        }
        if (word.starts_with('-') && word.size() > 1) {
            const std::string name = option_name(word);
            const CLI::Option* option = command->get_option_no_throw(name);
            if (option == nullptr) {
                return no_option(*command, name);
            }
            const bool value_follows = option->get_items_expected_max() > 0 && name == word;
            i += value_follows ? 1 : 0;
            continue;
        }
        const auto commands = command->get_subcommands(nullptr);
        if (commands.empty()) {
            continue;
        }
        const auto found = std::find_if(commands.begin(), commands.end(),
                                        [&](const auto* one) { return one->get_name() == word; });
        if (found == commands.end()) {
            return no_command(*command, word);
        }
        command = *found;
    }
    return {};
}

}  // namespace ration
