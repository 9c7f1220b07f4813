#include "server/config/config_reader.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "policy/rate.h"
#include "server/config/units.h"

namespace ration {

namespace {

constexpr std::size_t max_text_bytes = 4096;

}  // namespace

std::string ConfigFile::path(std::string_view written) const {
    const std::filesystem::path relative(written);
    return relative.is_absolute() ? std::string(written)
                                  : (std::filesystem::path(folder) / relative).string();
}

ConfigReader::ConfigReader(ConfigFile& file, const YamlNode& node, std::string what)
    : file_(file), node_(node), what_(std::move(what)) {
    file_.reader.any_mapping(node, what_);
}

const YamlNode* ConfigReader::find(std::string_view key) {
    known_.push_back(key);
    return node_.find(key);
}

const YamlNode* ConfigReader::text(std::string_view key, std::string& value) {
    const YamlNode* found = find(key);
    if (found == nullptr) {
        return nullptr;
    }
    const auto read = file_.reader.text(*found, key);
    if (!read.has_value()) {
        return nullptr;
    }
    if (read->empty() || read->size() > max_text_bytes) {
        error(*found, read->empty() ? cat(key, " is empty")
                                    : cat(key, " is longer than ", max_text_bytes, " bytes"));
        return nullptr;
    }
    value = *read;
    return found;
}

const YamlNode* ConfigReader::path(std::string_view key, std::string& value) {
    std::string written;
    const YamlNode* found = text(key, written);
    if (found != nullptr) {
        value = file_.path(written);
    }
    return found;
}

void ConfigReader::readable(std::string_view key, std::string& value) {
    const YamlNode* node = path(key, value);
    if (node == nullptr) {
        return;
    }
    if (const std::string why = why_not_a_file(value); !why.empty()) {
        error(*node, cat(key, " '", value, "' ", why));
    } else if (::access(value.c_str(), R_OK) != 0) {
        error(*node, cat(key, " '", value, "' cannot be read"));
    }
}

const YamlNode* ConfigReader::secret(const SecretKeys& keys, Policy::Environment environment,
                                     Secret& secret) {
    std::string written;
    const YamlNode* from_env = text(keys.env, written);
    const YamlNode* from_file = path(keys.file, secret.file);
    if (from_env != nullptr && from_file != nullptr) {
        error(*from_file, cat("'", keys.env, "' and '", keys.file, "' exclude one another"));
        return nullptr;
    }
    if (from_env != nullptr) {
        const bool is_env = written.starts_with("env.") && written.size() > 4;
        const char* value = is_env ? environment(written.c_str() + 4) : nullptr;
        if (value == nullptr) {
            error(*from_env, is_env ? cat("the environment has no ", written.substr(4))
                                    : cat(keys.called,
                                          " does not stand in this file: write env.NAME, or use '",
                                          keys.file, "'"));
            return nullptr;
        }
        secret.value = value;
        return from_env;
    }
    if (from_file != nullptr) {
        Problems unread;
        if (!read_file(secret.file, secret.value, unread)) {
            error(*from_file, cat(keys.file, " '", secret.file, "' cannot be read"));
            return nullptr;
        }
        secret.value.erase(secret.value.find_last_not_of(" \t\r\n") + 1);
    }
    return from_file;
}

void ConfigReader::flag(std::string_view key, bool& value) {
    if (const YamlNode* found = find(key)) {
        value = file_.reader.boolean(*found, key).value_or(value);
    }
}

void ConfigReader::duration(std::string_view key, Nanos& value, Bounds<Nanos> bounds) {
    std::string written;
    const YamlNode* found = text(key, written);
    if (found == nullptr) {
        return;
    }
    Nanos read{0};
    if (const auto problem = parse_period(written, read)) {
        error(*found, cat(key, " is a duration like 15s or 500ms: ", problem->reason));
    } else if (read < bounds.least || read > bounds.most) {
        error(*found, cat(key, " is from ", duration_text(bounds.least), " to ",
                          duration_text(bounds.most), ", not '", written, "'"));
    } else {
        value = read;
    }
}

std::optional<std::uint64_t> ConfigReader::read_size(std::string_view key,
                                                     Bounds<std::uint64_t> bounds) {
    std::string written;
    const YamlNode* found = text(key, written);
    if (found == nullptr) {
        return std::nullopt;
    }
    const auto read = parse_size(written);
    if (!read.has_value() || *read < bounds.least || *read > bounds.most) {
        error(*found, cat(key, " is a size from ", size_text(bounds.least), " to ",
                          size_text(bounds.most), ", like 64KiB, not '", written, "'"));
        return std::nullopt;
    }
    return read;
}

void ConfigReader::finish() {
    for (const YamlNode::Entry& entry : node_.entries) {
        if (std::find(known_.begin(), known_.end(), entry.key->scalar) == known_.end()) {
            file_.reader.unknown(entry.key->at, cat("key of ", what_), entry.key->scalar, known_);
        }
    }
}

}  // namespace ration
