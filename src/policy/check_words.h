// Slips in the words that a directory may give a meaning: kinds of entities and attributes.
//
// Any word may be a kind of entity, so `per: [wokspace]` reads well and would apply to nobody. Such
// a word is an error when it is almost a word that has a meaning (one of the language, of the
// policy's `identify`, of the directory) and has none itself. Adds errors with the nearest word.
// `Policy::parse` does this when it is given the directory; this is for one policy that is read
// with several. Thread rule: call from anywhere.
//
//   check_words(*policy, *directory, problems);
#pragma once

#include "policy/directory.h"
#include "policy/policy.h"
#include "policy/problems.h"

namespace ration {

// `directory` of no file: it is not known; what only a directory could settle is then a warning, or
// says how to name one.
void check_words(const Policy& policy, const Directory& directory, Problems& problems);

}  // namespace ration
