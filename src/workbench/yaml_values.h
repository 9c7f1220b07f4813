// Values of test files out of YAML nodes: bodies, header fields, spans. Every refusal goes to the
// reader's problems with its position; what could not be read is left out. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>

#include "policy/reader.h"
#include "workbench/message.h"

namespace ration {

// The node as compact JSON: unquoted scalars that are JSON (12, true, null) stay what they are,
// everything else is a string.
[[nodiscard]] std::string yaml_to_json(const YamlNode& node);

// Text as it is; a mapping, list or nothing as JSON.
[[nodiscard]] std::string read_body(const YamlNode& node);

// Adds the fields of a mapping name -> value, list of values, or nothing (takes the field out).
// A name that `fields` has already is replaced.
void read_fields(Reader& reader, const YamlNode& node, Fields& fields);

// Takes every field of that name out.
void remove_field(Fields& fields, std::string_view name);

[[nodiscard]] std::optional<Nanos> read_span(Reader& reader, const YamlNode& node,
                                             std::string_view what);

}  // namespace ration
