// Reads the settings of one YAML mapping into values, each checked against its bounds.
//
// A setting that is absent leaves its value as it is; one that is wrong adds a problem and does the
// same. `finish` reports every key that nothing asked for, with the nearest known word. Thread
// rule: one thread. Ownership: file and node must outlive the reader.
//
//   ConfigReader limits(file, node, "limits");
//   limits.size("header", options.max_header_bytes, {1024, 1 << 20});
//   limits.finish();
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "policy/problems.h"
#include "policy/reader.h"
#include "policy/yaml_source.h"
#include "ration/time.h"

namespace ration {

struct ConfigFile {
    std::string folder;  // with '/' at its end, or empty
    Reader reader;       // reports against the file

    // A path as written in the file, relative to the file's folder.
    [[nodiscard]] std::string path(std::string_view written) const;
};

template <typename T>
struct Bounds {
    T least;
    T most;
};

class ConfigReader {
public:
    // `what` names the mapping in messages ("limits"); a node that is no mapping is a problem, and
    // then every setting is absent.
    ConfigReader(ConfigFile& file, const YamlNode& node, std::string what);

    // The setting's node, or nullptr; it counts as asked for.
    [[nodiscard]] const YamlNode* find(std::string_view key);

    // Non-empty text, at most 4096 bytes. Returns the node when `value` was set.
    const YamlNode* text(std::string_view key, std::string& value);
    const YamlNode* path(std::string_view key, std::string& value);
    // The path of a file that is there and may be read; else a problem.
    void readable(std::string_view key, std::string& value);
    // What must not stand in the file itself: one key names a variable of the environment
    // (env.NAME), the other a file whose last blanks and line ends do not count; both is a problem.
    // Returns the node when `secret.value` was set. The keys are literals, as everywhere here.
    struct SecretKeys {
        std::string_view env;
        std::string_view file;
        std::string_view called;  // in messages: "a password"
    };
    struct Secret {
        std::string value;
        std::string file;  // where it stands, if it came from a file
    };
    const YamlNode* secret(const SecretKeys& keys, Policy::Environment environment, Secret& secret);
    void flag(std::string_view key, bool& value);
    void duration(std::string_view key, Nanos& value, Bounds<Nanos> bounds);

    template <std::unsigned_integral T>
    void size(std::string_view key, T& value, Bounds<std::uint64_t> bounds) {
        if (const auto read = read_size(key, bounds)) {
            value = static_cast<T>(*read);
        }
    }
    template <std::unsigned_integral T>
    void number(std::string_view key, T& value, Bounds<std::uint64_t> bounds) {
        const YamlNode* found = find(key);
        if (found == nullptr) {
            return;
        }
        if (const auto read = file_.reader.whole(*found, key, bounds.least, bounds.most)) {
            value = static_cast<T>(*read);
        }
    }

    void finish();
    void error(const YamlNode& at, std::string reason) {
        file_.reader.error(at.at, std::move(reason));
    }
    [[nodiscard]] ConfigFile& file() { return file_; }
    [[nodiscard]] const YamlNode& node() const { return node_; }

private:
    [[nodiscard]] std::optional<std::uint64_t> read_size(std::string_view key,
                                                         Bounds<std::uint64_t> bounds);

    ConfigFile& file_;
    const YamlNode& node_;
    std::string what_;
    std::vector<std::string_view> known_;
};

}  // namespace ration
