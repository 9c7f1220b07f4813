// Problem: the kinds that a directory may have are open, so no closed list says which word is
// wrong. Idea: a word that has a meaning anywhere is right; of the others only those a letter or
// two beside a known word are taken for slips, and the directory's own words count as known.
#include "policy/check_words.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"

namespace ration {
namespace {

// Words of the language that stand alone, and those that a name follows.
constexpr std::array<std::string_view, 4> single_words{"route", "method", "address", "credential"};
constexpr std::array<std::string_view, 5> leading_words{"credential", "path", "query", "header",
                                                        "body"};

using Words = std::vector<std::string_view>;

bool has(const Words& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

template <typename Range>
Words with(Words words, const Range& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

class WordCheck {
public:
    WordCheck(const Policy& policy, const Directory* directory, Problems& problems)
        : policy_(policy), directory_(directory), problems_(problems) {
        kinds_ = with({}, well_known_kinds);
        attributes_ = with({}, well_known_attributes);
        for (const auto& [kind, selector] : policy.bound_entities) {
            kinds_.push_back(kind);
        }
        if (directory != nullptr) {
            kinds_ = with(std::move(kinds_), directory->kinds());
        }
        for (const IssueRule& issue : policy.issues) {
            check_owner(issue);
            for (const IssuedNumber& number : issue.numbers) {
                attributes_.push_back(number.name);
            }
        }
        for (const IssueRule& issue : policy.issues) {
            kinds_.push_back(issue.owner);
        }
        std::sort(kinds_.begin(), kinds_.end());  // the directory's came in no order
    }

    void run() {
        for (const EntityWord& word : policy_.entity_words) {
            Position at = word.at;
            for (std::size_t i = 0; i < word.steps.size(); ++i) {
                const std::string& step = word.steps[i];
                if (i + 1 == word.steps.size() && word.attribute) {
                    check_attribute(at, step);
                } else if (!check_kind(word, i, at)) {
                    break;
                }
                at.column += static_cast<int>(step.size()) + 1;
            }
        }
    }

private:
    void slip(Position at, std::string_view what, std::string_view word, std::string_view meant) {
        problems_.error(policy_.file, at,
                        cat("unknown ", what, " '", word, "'; did you mean '", meant, "'?",
                            directory_ == nullptr ? " (or give the directory that has it)" : ""));
    }

    // Owners are kinds that the policy makes known, and can be slips themselves.
    void check_owner(const IssueRule& issue) {
        if (has(kinds_, issue.owner)) {
            return;
        }
        if (const std::string_view meant = slip_of(issue.owner, kinds_); !meant.empty()) {
            slip(issue.owner_at, "kind of entity", issue.owner, meant);
        }
    }

    // False: what follows the step makes no sense any more.
    bool check_kind(const EntityWord& word, std::size_t index, Position at) {
        const std::string& step = word.steps[index];
        const bool first = index == 0;
        if ((first && step == "credential") || has(kinds_, step)) {
            return true;
        }
        if (first && is_credential_kind(step)) {
            tell_credential_kind(word, at);
            return false;
        }
        Words known = kinds_;
        if (first) {
            known = word.attribute ? with(std::move(known), leading_words)
                                   : with(std::move(known), single_words);
        }
        const std::string_view meant = slip_of(step, known);
        if (meant.empty()) {
            return true;
        }
        slip(at, first ? "word" : "kind of entity", step, meant);
        return false;
    }

    [[nodiscard]] bool is_credential_kind(std::string_view word) const {
        return std::find(policy_.kinds.begin(), policy_.kinds.end(), word) != policy_.kinds.end();
    }

    void tell_credential_kind(const EntityWord& word, Position at) {
        const std::string& kind = word.steps[0];
        if (!word.attribute) {
            std::string text = cat("'", kind,
                                   "' is a kind of credential and no kind of entity; 'credential' "
                                   "counts each key apart");
            directory_ == nullptr ? problems_.warning(policy_.file, at, std::move(text))
                                  : problems_.error(policy_.file, at, std::move(text));
            return;
        }
        std::string meant = "credential";
        for (std::size_t i = 1; i < word.steps.size(); ++i) {
            meant += cat(".", word.steps[i]);
        }
        slip(at, "kind of entity", kind, meant);
    }

    // A plan's number of users is `users`.
    [[nodiscard]] bool counts_a_kind(std::string_view name) const {
        return name.ends_with('s') && has(kinds_, name.substr(0, name.size() - 1));
    }

    void check_attribute(Position at, std::string_view name) {
        if (has(attributes_, name) || has(kinds_, name) || counts_a_kind(name)) {
            return;
        }
        const std::string_view meant = slip_of(name, with(attributes_, kinds_), 1);
        if (!meant.empty() && (directory_ == nullptr || !directory_->has_attribute(name))) {
            slip(at, "attribute", name, meant);
        }
    }

    const Policy& policy_;
    const Directory* directory_;
    Problems& problems_;
    Words kinds_;
    Words attributes_;
};

}  // namespace

void check_words(const Policy& policy, const Directory& directory, Problems& problems) {
    const Problems::Mark before = problems.mark();
    WordCheck(policy, directory.file().empty() ? nullptr : &directory, problems).run();
    problems.sort_from(before);
}

}  // namespace ration
