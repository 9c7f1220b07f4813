#include "engine/identify.h"

#include "request/credential.h"

namespace ration {

void identify(Exchange& exchange, IssuedCredentials* issued) {
    const Policy& policy = exchange.policy();
    const PresentedCredential presented =
        find_credential(policy.credentials, exchange.request.headers);
    exchange.credential = nullptr;
    if (presented.state != Presented::recognised) {
        exchange.kind = presented.state == Presented::nothing ? kind_anonymous : kind_unknown;
        return;
    }
    const CredentialRule& rule = policy.credentials[presented.rule];
    const KindIndex kind = policy.kind_of_rule[presented.rule];
    exchange.credential = exchange.rules->directory->find(rule.kind, presented.secret);
    if (exchange.credential == nullptr && issued != nullptr) {
        exchange.issued = issued->find(rule.kind, presented.secret, exchange.rules->directory,
                                       exchange.arrived.wall);
        exchange.credential = exchange.issued.get();
    }
    if (exchange.credential != nullptr) {
        exchange.kind = kind;
    } else if (rule.source == CredentialSource::cookie ||
               (policy.unknown_is_anonymous & kind_bit(kind)) != 0) {
        exchange.kind = kind_anonymous;
    } else {
        exchange.kind = kind_unknown;
    }
}

}  // namespace ration
