// What is wrong with a file, all of it at once, each as `file:line:column: reason`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace ration {

struct Position {
    int line = 0;    // from 1; 0: the file as a whole
    int column = 0;  // from 1
};

struct Problem {
    std::string file;
    Position at;
    std::string reason;

    [[nodiscard]] std::string text() const;  // "file:line:column: reason"
};

inline constexpr std::size_t max_problems = 100;  // of each sort; one line then says there are more

class Problems {
public:
    void error(std::string_view file, Position at, std::string reason);
    void warning(std::string_view file, Position at, std::string reason);

    // How many there are; and to put those that came after `from` in the order of their places.
    struct Mark {
        std::size_t errors = 0;
        std::size_t warnings = 0;
    };
    [[nodiscard]] Mark mark() const { return {errors_.size(), warnings_.size()}; }
    void sort_from(Mark from);

    // No further error will be kept; searching for the nearest word is in vain.
    [[nodiscard]] bool full() const { return errors_.size() > max_problems; }
    [[nodiscard]] bool ok() const { return errors_.empty(); }
    [[nodiscard]] const std::vector<Problem>& errors() const { return errors_; }
    [[nodiscard]] const std::vector<Problem>& warnings() const { return warnings_; }
    // All errors in one InvalidArgument, one a line; OK when there are none.
    [[nodiscard]] absl::Status status() const;

private:
    static void add(std::vector<Problem>& list, Problem problem);

    std::vector<Problem> errors_;
    std::vector<Problem> warnings_;
};

// The word of `known` that `word` was probably meant to be, or empty: for "did you mean". Fewest
// edits win, at most a third of the word's letters (but one always); case does not matter.
inline constexpr std::size_t max_known_words = 1024;  // of longer lists the first ones
[[nodiscard]] std::string_view nearest_word(std::string_view word,
                                            const std::vector<std::string_view>& known);

// The same where `word` may well be right as it is: one edit, or `far` edits of words from seven
// letters on, and the first letter stays unless the word is long and only one letter is wrong.
[[nodiscard]] std::string_view slip_of(std::string_view word,
                                       const std::vector<std::string_view>& known,
                                       std::size_t far = 2);

}  // namespace ration
