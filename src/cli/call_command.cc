// `ration call`: asks as a well-behaved client does, for people and for scripts.
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "base/text.h"
#include "cli/call/arguments.h"
#include "cli/call/each.h"
#include "cli/call/ending.h"
#include "cli/call/story.h"
#include "cli/commands.h"

namespace ration {

namespace {

int wrong_use(std::string_view what) {
    std::cerr << "ration call: " << what << '\n';
    return exit_wrong_use;
}

// Where the answer goes.
class Output {
public:
    explicit Output(const CallArguments& arguments) : include_(arguments.include) {
        if (!arguments.output.empty()) {
            file_.open(arguments.output, std::ios::binary | std::ios::trunc);
            to_file_ = true;
        }
    }
    [[nodiscard]] std::ostream& stream() { return to_file_ ? file_ : std::cout; }
    void head(const ClientResult& result) {
        if (!include_ || result.status == 0) {
            return;
        }
        stream() << "HTTP " << result.status << '\n';
        for (const auto& [field, value] : result.headers) {
            stream() << field << ": " << value << '\n';
        }
        stream() << '\n';
    }

private:
    bool include_;
    bool to_file_ = false;
    std::ofstream file_;
};

// A made key is worth telling when the outcome is not known for good: with it the call can be
// resumed.
void tell_key(const CallArguments& arguments, const ClientResult& result, int code) {
    const bool resumable = code == exit_limited || code == exit_no_answer || code == exit_unknown ||
                           code == exit_interrupted;
    if (resumable && arguments.key == "auto" && keyed(result) && result.attempts > 0) {
        std::cerr << "ration call: to go on with the same call: --idempotency-key "
                  << result.idempotency_key << '\n';
    }
}

ClientResult call_once(const CallArguments& arguments, ClientOptions options,
                       ClientRequest request) {
    Terminal terminal;
    Story story(terminal, arguments.verbose);
    options.hooks = story.hooks();
    const Cancellation cancellation;
    request.cancellation = cancellation;
    const Interrupts interrupts(cancellation, [&] { terminal.live(story.waiting()); });
    auto client = Client::create(std::move(options));
    if (!client.ok()) {
        ClientResult wrong;
        wrong.error = AttemptError::bad_request;
        wrong.reason = StopReason::error_not_retryable;
        wrong.message = std::string(client.status().message());
        return wrong;
    }
    return (*client)->call(std::move(request));
}

int run_call(const CallArguments& arguments) {
    // A closed pipe or a full file is an answer that cannot be written, and has an exit code.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    if (!arguments.each.empty()) {
        return call_each(arguments);
    }
    if (arguments.url.empty()) {
        return wrong_use("URL is required, or --each");
    }
    auto options = client_options(arguments);
    auto request = base_request(arguments);
    if (!options.ok() || !request.ok()) {
        const absl::Status status = options.ok() ? request.status() : options.status();
        return wrong_use({status.message().data(), status.message().size()});
    }
    Output output(arguments);
    if (!output.stream()) {
        return wrong_use(cat(arguments.output, ": cannot be written"));
    }
    if (arguments.stream) {
        request->on_body = [&](std::string_view bytes) {
            return (output.stream() << bytes).good();
        };
    }
    const std::string method = request->method;
    const ClientResult result = call_once(arguments, *std::move(options), *std::move(request));
    const int code = exit_code_of(result, method);
    if (!arguments.stream || !result.ok()) {
        output.head(result);
    }
    output.stream() << result.body << std::flush;
    if (!output.stream()) {
        std::cerr << "ration call: the answer cannot be written\n";
        const int lost = exit_code_of_lost(result, method);
        tell_key(arguments, result, lost);
        return lost;
    }
    if (code != exit_good) {
        std::cerr << "ration call: " << ending_of(result) << '\n';
        tell_key(arguments, result, code);
    }
    return code;
}

}  // namespace

void add_call_command(CLI::App& app, int& exit_code) {
    CLI::App* command = app.add_subcommand(
        "call",
        "Ask a server as a well-behaved client: waits as told, backs off, never repeats what is "
        "unsafe. Exit: 0 good, 1 refused for good, 2 wrong use, 3 limited still, 4 no answer, "
        "5 outcome unknown, 130 interrupted");
    auto arguments = std::make_shared<CallArguments>();
    add_call_options(*command, *arguments);
    command->callback([arguments, &exit_code] { exit_code = run_call(*arguments); });
}

}  // namespace ration
