#include "cli/empty_value.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ration {
namespace {

constexpr std::array<std::string_view, 4> may_be_empty = {"data", "proxy", "name", "after"};

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

bool takes_empty(const CLI::Option& option) {
    const std::vector<std::string>& names = option.get_lnames();
    const bool named = std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return std::find(may_be_empty.begin(), may_be_empty.end(), name) != may_be_empty.end();
    });
    return named && option.get_type_name() == "TEXT";  // of the same name there are numbers
}

// A list of nothing (",") is empty too.
std::string without_only_delimiters(const CLI::Option& option, std::string value) {
    const char delimiter = option.get_delimiter();
    const bool only = delimiter != '\0' && value.find_first_not_of(delimiter) == std::string::npos;
    return only ? std::string() : value;
}

// The parser reads 010 as 8 and 0x10 as 16.
std::string why_no_number(const std::string& value) {
    const std::size_t sign = value.starts_with('-') || value.starts_with('+') ? 1 : 0;
    const std::string_view digits = std::string_view(value).substr(sign);
    const bool octal = digits.size() > 1 && digits[0] == '0' && digits[1] != '.';
    const bool plain = digits.find_first_not_of("0123456789.") == std::string_view::npos;
    return octal || !plain ? value + " is no number in decimal digits" : std::string();
}

bool takes_number(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    return type == "INT" || type == "UINT" || type == "FLOAT";
}

// The command of that name below `command`; itself when there is none.
const CLI::App* command_named(const CLI::App& command, const std::string& word) {
    for (const CLI::App* below : command.get_subcommands(nullptr)) {
        if (below->get_name() == word) {
            return below;
        }
    }
    return &command;
}

}  // namespace

void refuse_odd_values(CLI::App& app) {
    for (CLI::Option* option : app.get_options()) {
        if (takes_value(*option) && !takes_empty(*option)) {
            // A transform, which comes before what else is checked of the value.
            option->transform(CLI::Validator(
                [](const std::string& value) {
                    return value.empty() ? std::string("the value is empty") : std::string();
                },
                std::string()));
        }
        if (takes_number(*option)) {
            option->check(CLI::Validator(
                [](const std::string& value) { return why_no_number(value); }, std::string()));
        }
    }
    for (CLI::App* command : app.get_subcommands(nullptr)) {
        refuse_odd_values(*command);
    }
}

std::vector<std::string> spell_empty_values(const CLI::App& app,
                                            std::span<const char* const> words) {
    std::vector<std::string> spelt;
    const CLI::App* command = &app;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string word = words[i];
        if (word == "--") {
            spelt.insert(spelt.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
            break;
        }
        if (word.size() < 2 || word.front() != '-') {
            command = command_named(*command, word);
            spelt.push_back(word);
            continue;
        }
        const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
        const CLI::Option* option = command->get_option_no_throw(word.substr(0, equals));
        const bool valued = option != nullptr && takes_value(*option);
        spelt.push_back(valued ? word.substr(0, equals) : word);
        if (valued && equals != std::string::npos) {
            spelt.push_back(without_only_delimiters(*option, word.substr(equals + 1)));
        } else if (valued && i + 1 < words.size()) {  // its value, which may look like anything
            spelt.push_back(without_only_delimiters(*option, words[++i]));
        }
    }
    return spelt;
}

}  // namespace ration
