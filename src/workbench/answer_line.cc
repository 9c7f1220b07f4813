#include "workbench/answer_line.h"

#include <vector>

#include "base/text.h"
#include "request/header.h"
#include "workbench/instant.h"
#include "workbench/json_cursor.h"

namespace ration {

namespace {

// name -> value, or a list of values when the field stands more than once.
std::string fields_object(const Fields& fields) {
    std::string out = "{";
    std::vector<bool> done(fields.size(), false);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (done[i]) {
            continue;
        }
        std::string values = json_quoted(fields[i].second);
        bool several = false;
        for (std::size_t j = i + 1; j < fields.size(); ++j) {
            if (equal_ignoring_case(fields[i].first, fields[j].first)) {
                values += cat(",", json_quoted(fields[j].second));
                done[j] = several = true;
            }
        }
        out += cat(out.size() > 1 ? "," : "", json_quoted(fields[i].first), ":",
                   several ? cat("[", values, "]") : values);
    }
    return out + "}";
}

}  // namespace

std::string answer_line(std::string_view id, std::string_view at, const ServiceAnswer& answer) {
    const std::string status = answer.status == 0 ? "null" : cat(answer.status);
    const std::string rule = answer.rule ? json_quoted(*answer.rule) : "null";
    const std::string wait = answer.wait ? decimal_seconds(*answer.wait) : "null";
    return cat("{\"id\":", id, ",\"at\":", at, ",\"outcome\":\"", to_string(answer.outcome),
               "\",\"status\":", status, ",\"headers\":", fields_object(answer.headers),
               ",\"body\":", json_quoted(answer.body), ",\"rule\":", rule, ",\"wait\":", wait, "}");
}

}  // namespace ration
