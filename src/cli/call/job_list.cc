#include "cli/call/job_list.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "base/text.h"
#include "cli/call/arguments.h"
#include "cli/call/ending.h"
#include "cli/call/shown.h"
#include "client/access.h"
#include "client/url.h"
#include "nlohmann/json.hpp"
#include "policy/yaml_source.h"
#include "wire/decimal.h"

namespace ration {
namespace {

using Json = nlohmann::ordered_json;

// FNV-1a: the same in each build, since it is written to files.
std::string hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) {
        digits += "0123456789abcdef"[(hash >> static_cast<unsigned>(shift)) & 0xfU];
    }
    return digits;
}

absl::Status wrong(std::string_view what) {
    return absl::InvalidArgumentError({what.data(), what.size()});
}

absl::Status set_headers(const Json& headers, ClientRequest& request) {
    if (!headers.is_object()) {
        return wrong("headers: an object of names and texts");
    }
    for (const auto& [field, value] : headers.items()) {
        if (!value.is_string()) {
            return wrong(cat("headers: ", field, " is no text"));
        }
        std::erase_if(request.headers, [&, &field = field](const auto& line) {
            return find_header({line}, field) != nullptr;
        });
        request.headers.emplace_back(field, value.get<std::string>());
    }
    return absl::OkStatus();
}

absl::Status set_text(const Json& job, const char* member, std::string& into) {
    const auto found = job.find(member);
    if (found == job.end()) {
        return absl::OkStatus();
    }
    if (!found->is_string()) {
        return wrong(cat(member, " is no text"));
    }
    into = found->get<std::string>();
    return absl::OkStatus();
}

absl::Status set_from_object(const Json& job, ClientRequest& request, std::string& url) {
    for (const auto& [member, value] : job.items()) {
        if (member != "url" && member != "method" && member != "headers" && member != "body" &&
            member != "id" && member != "idempotency_key") {
            return wrong(cat("unknown member ", member));
        }
    }
    for (const absl::Status& status :
         {set_text(job, "url", url), set_text(job, "method", request.method),
          set_text(job, "idempotency_key", request.idempotency_key)}) {
        if (!status.ok()) {
            return status;
        }
    }
    if (const auto headers = job.find("headers"); headers != job.end()) {
        if (absl::Status status = set_headers(*headers, request); !status.ok()) {
            return status;
        }
    }
    if (const auto body = job.find("body"); body != job.end()) {
        set_body(request, body->is_string() ? body->get<std::string>() : body->dump());
        request.method =
            job.contains("method") || request.method != "GET" ? request.method : "POST";
    }
    return absl::OkStatus();
}

constexpr std::array<std::string_view, 4> state_names = {"done", "failed", "unknown", "open"};

std::string_view name(JobState state) {
    return state_names[static_cast<std::size_t>(state)];
}

// A member's text; empty when it has none.
std::string text_in(const Json& object, const char* member) {
    const auto found = object.find(member);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void trim(std::string& text, std::uint64_t line) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";  // some editors begin a file with it
    if (line == 1 && text.starts_with(mark)) {
        text.erase(0, mark.size());
    }
    text.erase(text.find_last_not_of(" \t\r") + 1);
    text.erase(0, text.find_first_not_of(" \t"));
}

}  // namespace

absl::StatusOr<std::vector<Job>> read_jobs(const std::string& path) {
    std::ifstream file;
    if (path != "-") {
        file.open(path, std::ios::binary);
        if (!file) {
            return wrong(cat(path, ": cannot be read"));
        }
    }
    std::istream& input = path == "-" ? std::cin : file;
    std::vector<Job> jobs;
    std::string text;
    for (std::uint64_t line = 1; std::getline(input, text); ++line) {
        trim(text, line);
        if (text.empty() || text.starts_with('#')) {
            continue;
        }
        if (text.size() > max_job_bytes || jobs.size() == max_jobs) {
            return wrong(cat(path, ":", line, ": ",
                             text.size() > max_job_bytes
                                 ? cat("longer than ", max_job_bytes, " bytes")
                                 : cat("more than ", max_jobs, " jobs")));
        }
        jobs.push_back({line, text});
    }
    if (input.bad()) {  // a folder, or a failing disk
        return wrong(cat(path, ": cannot be read"));
    }
    return jobs;
}

absl::StatusOr<ClientRequest> job_request(const Job& job, const ClientRequest& base) {
    ClientRequest request = base;
    std::string url;
    if (job.text.starts_with('{')) {
        const Json json = Json::parse(job.text, nullptr, false);
        if (!json.is_object()) {
            return wrong("not JSON");
        }
        if (absl::Status status = set_from_object(json, request, url); !status.ok()) {
            return status;
        }
    } else if (job.text.starts_with('[') || job.text.starts_with('"') ||
               job.text.find_first_of(" \t") != std::string::npos) {
        return wrong("neither a URL nor a JSON object");
    } else {
        url = job.text;
    }
    if (url.empty() && base.url.empty()) {
        return wrong("no url");
    }
    if (!url.empty() && !base.url.empty()) {
        const auto resolved = client::resolve_url(base.url, url);
        if (!resolved) {
            return wrong(cat("no such URL: ", shown_url(url)));
        }
        request.url = resolved->url;
    } else if (!url.empty()) {
        request.url = url;
    }
    return request;
}

absl::StatusOr<std::unique_ptr<ResultLog>> ResultLog::open(const std::string& path) {
    std::unique_ptr<ResultLog> log(new ResultLog);
    log->run_ = new_idempotency_key();
    if (path.empty()) {
        return log;
    }
    if (absl::Status status = log->hold(path); !status.ok()) {
        return status;
    }
    if (absl::Status status = log->read(path); !status.ok()) {
        return status;
    }
    log->to_file_ = true;
    log->file_.open(path, std::ios::binary | std::ios::app);
    if (log->cut_) {
        log->file_ << '\n';  // what a crash left of a line stands alone
    }
    if (log->file_.tellp() == std::ofstream::pos_type(0)) {
        log->file_ << Json{{"run", log->run_}}.dump() << std::endl;
    }
    if (!log->file_) {
        return wrong(cat(path, ": cannot be written"));
    }
    return log;
}

ResultLog::~ResultLog() {
    if (held_ >= 0) {
        ::close(held_);
    }
}

// Two runs at once would each do what the other has not yet written down.
absl::Status ResultLog::hold(const std::string& path) {
    if (const std::string why = why_not_a_file(path); !why.empty()) {
        return wrong(cat(path, ": ", why));
    }
    held_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (held_ < 0) {
        return wrong(cat(path, ": cannot be written"));
    }
    if (::flock(held_, LOCK_EX | LOCK_NB) != 0) {
        return absl::FailedPreconditionError(cat(path, ": another run writes its results there"));
    }
    return absl::OkStatus();
}

absl::Status ResultLog::read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text;
    for (std::uint64_t line = 1; std::getline(file, text); ++line) {
        cut_ = file.eof();  // the line has no end
        const Json json = Json::parse(text, nullptr, false);
        if (line == 1) {
            if (!json.is_object() || !json.contains("run") || !json["run"].is_string()) {
                return absl::FailedPreconditionError(
                    cat(path, ":1: no results of an earlier run; give the name of a new file"));
            }
            run_ = json["run"].get<std::string>();
        } else if (json.is_object() && json.contains("line") && json["line"].is_number_unsigned()) {
            const auto state =
                std::find(state_names.begin(), state_names.end(), text_in(json, "state"));
            const auto which = static_cast<JobState>(state - state_names.begin());
            if (state != state_names.end() && which != JobState::open) {
                over_[json["line"].get<std::uint64_t>()] = {text_in(json, "job"), which};
            }
        }  // a last line that a crash cut off is of no job
    }
    return absl::OkStatus();
}

std::optional<JobState> ResultLog::before(const Job& job) const {
    const auto found = over_.find(job.line);
    if (found == over_.end() || found->second.hash != hash_of(job.text)) {
        return std::nullopt;
    }
    return found->second.state;
}

std::string ResultLog::key_of(const Job& job, const ClientRequest& request) const {
    const std::string& body = BodyAccess::bytes(request.body);
    return cat(run_, '-', job.line, '-',
               hash_of(cat(request.method, '\n', request.url, '\n', body)));
}

bool ResultLog::write(const Job& job, JobState state, const ClientResult& result) {
    Json line = {{"line", job.line}, {"job", hash_of(job.text)}};
    const Json parsed = job.text.starts_with('{') ? Json::parse(job.text, nullptr, false) : Json();
    if (parsed.is_object() && parsed.contains("id")) {
        line["id"] = parsed["id"];
    }
    line["state"] = name(state);
    line["status"] = result.status;
    line["reason"] = ration::name(result.reason);
    line["attempts"] = result.attempts;
    if (!result.error_type.empty()) {
        line["error_type"] = result.error_type;
    }
    if (!result.message.empty()) {
        line["message"] = result.message;
    }
    if (const auto at = again_from(result)) {
        char moment[max_decimal_bytes];
        line["retry_at"] = rfc3339(*at, moment);
    }
    if (result.body.size() <= max_result_body_bytes) {
        line["body"] = result.body;
    }
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
    const std::lock_guard lock(mutex_);
    std::ostream& out = to_file_ ? file_ : std::cout;
    out << text << std::endl;
    return out.good();
}

}  // namespace ration
