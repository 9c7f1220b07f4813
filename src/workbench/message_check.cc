#include "workbench/message_check.h"

#include "base/text.h"
#include "server/http/fields.h"
#include "workbench/json_cursor.h"

namespace ration {

std::string wrong_field(std::string_view name, std::string_view value) {
    if (!http::is_token(name)) {
        return cat(json_quoted(name), " is not the name of a header");
    }
    return http::is_field_value(value) ? std::string()
                                       : cat("the header ", name, " has a control character");
}

}  // namespace ration
