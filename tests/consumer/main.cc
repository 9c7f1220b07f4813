// Limits a function: ten e-mails a minute for each user, two of whom write a lot.
#include <chrono>
#include <cstdio>
#include <string>

#include "ration/limiter.h"

int main() {
    auto limiter =
        ration::Limiter::create("emails", ration::token_bucket(10, std::chrono::minutes(1)));
    if (!limiter.ok()) {
        return 1;
    }
    int sent = 0;
    for (int mail = 0; mail < 40; ++mail) {
        const std::string user = mail % 2 == 0 ? "ana" : "bo";
        if (limiter->take(user).allowed) {
            ++sent;
        }
    }
    std::printf("%d of 40 sent\n", sent);
    return sent == 20 ? 0 : 1;
}
