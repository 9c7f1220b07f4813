// The header of a request in the form that libcurl reads, in one piece of memory instead of two for
// each line. Thread rule: one thread at a time. Ownership: `list` points into this, good until the
// next change.
//
//   lines.add("Authorization", "Bearer pk_1");
//   curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines.list());
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace ration::client {

class RequestLines {
public:
    RequestLines() = default;
    RequestLines(const RequestLines&) = delete;
    RequestLines& operator=(const RequestLines&) = delete;

    void clear() {
        text_.clear();
        text_.reserve(usual_bytes);
        begins_.clear();
    }

    // Neither may contain what ends a line. An empty value is sent as one.
    void add(std::string_view name, std::string_view value) {
        begin(name);
        if (value.empty()) {
            text_ += ';';
        } else {
            text_.append(": ").append(value);
        }
        text_ += '\0';
    }

    // What libcurl would add on its own.
    void leave_out(std::string_view name) {
        begin(name);
        text_.append(":").append(1, '\0');
    }

    // nullptr when there are none.
    [[nodiscard]] curl_slist* list() {
        nodes_.resize(begins_.size());
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            nodes_[i].data = text_.data() + begins_[i];
            nodes_[i].next = i + 1 < nodes_.size() ? &nodes_[i + 1] : nullptr;
        }
        return nodes_.empty() ? nullptr : nodes_.data();
    }

private:
    static constexpr std::size_t usual_bytes = 256;
    static constexpr std::size_t usual_lines = 8;

    void begin(std::string_view name) {
        begins_.push_back(text_.size());
        text_.append(name);
    }

    std::string text_;  // each line ends with a NUL
    absl::InlinedVector<std::size_t, usual_lines> begins_;
    absl::InlinedVector<curl_slist, usual_lines> nodes_;
};

}  // namespace ration::client
