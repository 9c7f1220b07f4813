// TLS on both sides, with certificates made for the test.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "net/tls.h"
#include "server/http/harness.h"

namespace ration::testing {
namespace {

namespace fs = std::filesystem;

// A self-signed certificate for localhost and 127.0.0.1, and one for another name.
class Certificates {
public:
    Certificates()
        : folder_(fs::temp_directory_path() / ("ration_tls_" + std::to_string(::getpid()))) {
        fs::create_directories(folder_);
        make("right", "DNS:localhost,IP:127.0.0.1");
        make("wrong", "DNS:other.test");
    }
    ~Certificates() { fs::remove_all(folder_); }

    [[nodiscard]] std::string certificate(const std::string& name) const {
        return (folder_ / (name + ".crt")).string();
    }
    [[nodiscard]] std::string key(const std::string& name) const {
        return (folder_ / (name + ".key")).string();
    }

private:
    void make(const std::string& name, const std::string& names) const {
        const std::string command =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
            "/CN=" +
            name + " -addext subjectAltName=" + names + " -keyout " + key(name) + " -out " +
            certificate(name) + " 2>/dev/null";
        ASSERT_EQ(std::system(command.c_str()), 0) << command;
    }

    fs::path folder_;
};

const Certificates& certificates() {
    static const Certificates made;
    return made;
}

// OpenSSL writes without MSG_NOSIGNAL; a peer that hung up must be an error here, not the end.
[[maybe_unused]] const auto sigpipe_before = std::signal(SIGPIPE, SIG_IGN);

class TlsTransport final : public Transport {
public:
    TlsTransport(SSL_CTX* context, int fd, bool accept) : ssl_(SSL_new(context)) {
        SSL_set_fd(ssl_, fd);
        ok_ = (accept ? SSL_accept(ssl_) : SSL_connect(ssl_)) == 1;
    }
    ~TlsTransport() override {
        if (ok_) {
            SSL_shutdown(ssl_);
        }
        SSL_free(ssl_);
    }
    long read(char* into, std::size_t size) override {
        return ok_ ? SSL_read(ssl_, into, static_cast<int>(size)) : -1;
    }
    long write(const char* from, std::size_t size) override {
        return ok_ ? SSL_write(ssl_, from, static_cast<int>(size)) : -1;
    }
    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] SSL* ssl() const { return ssl_; }

private:
    SSL* ssl_;
    bool ok_ = false;
};

struct Context {
    explicit Context(const SSL_METHOD* method) : context(SSL_CTX_new(method)) {}
    ~Context() { SSL_CTX_free(context); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    SSL_CTX* context;
};

GatewayWorldOptions tls_listener() {
    GatewayWorldOptions options;
    options.gateway.listeners = {{.tls = TlsServerOptions{certificates().certificate("right"),
                                                          certificates().key("right")}}};
    return options;
}

// A client that checks the certificate.
struct TlsClient {
    explicit TlsClient(std::uint16_t port, int highest_version = 0, const char* alpn = nullptr)
        : context(TLS_client_method()), plain(Conn::to_port(port)) {
        SSL_CTX_load_verify_locations(context.context, certificates().certificate("right").c_str(),
                                      nullptr);
        SSL_CTX_set_verify(context.context, SSL_VERIFY_PEER, nullptr);
        SSL_CTX_set_security_level(context.context, 0);
        if (highest_version != 0) {
            SSL_CTX_set_min_proto_version(context.context, TLS1_VERSION);
            SSL_CTX_set_max_proto_version(context.context, highest_version);
        }
        if (alpn != nullptr) {
            SSL_CTX_set_alpn_protos(context.context, reinterpret_cast<const unsigned char*>(alpn),
                                    static_cast<unsigned>(std::strlen(alpn)));
        }
        auto transport = std::make_unique<TlsTransport>(context.context, plain.fd(), false);
        session = transport.get();
        connection = std::make_unique<Conn>(::dup(plain.fd()), std::move(transport));
    }
    Context context;
    Conn plain;
    TlsTransport* session = nullptr;
    std::unique_ptr<Conn> connection;
};

TEST(TlsListener, ServesAndTellsTheUpstream) {
    ScriptedUpstream upstream([](Conn& connection, const Message& request) {
        return connection.send("HTTP/1.1 200 OK\r\nContent-Length: " +
                               std::to_string(request.body.size()) + "\r\n\r\n" + request.body);
    });
    GatewayWorld world(upstream.port(), tls_listener());
    TlsClient client(world.gateway->port(0), 0, "\x08http/1.1");
    ASSERT_TRUE(client.session->ok());
    const std::string body(3'000'000, 'x');
    client.connection->send(post("/", body) + get("/next"));
    std::optional<Message> answer = client.connection->read();
    ASSERT_TRUE(answer && answer->whole);
    EXPECT_TRUE(answer->body == body);
    EXPECT_EQ(client.connection->read()->status(), 200);
    EXPECT_EQ(upstream.requests().at(0).field("X-Forwarded-Proto"), "https");
    EXPECT_TRUE(world.recorder.wait_for(1).at(0).tls);
    const unsigned char* chosen = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(client.session->ssl(), &chosen, &length);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), length), "http/1.1");
}

TEST(TlsListener, OldVersionsAndOtherProtocolsAreRefused) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port(), tls_listener());
    EXPECT_FALSE(TlsClient(world.gateway->port(0), TLS1_1_VERSION).session->ok());
    EXPECT_TRUE(TlsClient(world.gateway->port(0), TLS1_2_VERSION).session->ok());
    EXPECT_FALSE(TlsClient(world.gateway->port(0), 0, "\x02h2").session->ok());
    Conn plain = world.connect();
    plain.send(get("/"));
    EXPECT_EQ(plain.read_to_end().find("HTTP"), std::string::npos);
    EXPECT_EQ(upstream.connections(), 0U);
    EXPECT_EQ(world.recorder.count(), 0U);
}

TEST(TlsListener, AHandshakeThatDoesNotEnd) {
    ScriptedUpstream upstream(answer_with("ok"));
    GatewayWorld world(upstream.port(), tls_listener());
    Conn client = world.connect();
    client.send("\x16\x03\x01");
    ASSERT_TRUE(world.advance_until([&] { return client.readable(0); }));
    EXPECT_TRUE(client.ended());
}

TEST(TlsListener, BadCertificatesAreErrors) {
    World world(open_policy, "");
    Recorder recorder;
    GatewayOptions options;
    options.upstream.port = 1;
    options.listeners = {{.tls = TlsServerOptions{"/nowhere.crt", certificates().key("right")}}};
    const auto missing = Gateway::start(options, world.engine(), world.clock, recorder);
    EXPECT_NE(missing.status().message().find("/nowhere.crt"), std::string::npos);
    options.listeners = {{.tls = TlsServerOptions{certificates().certificate("right"),
                                                  certificates().key("wrong")}}};
    EXPECT_FALSE(Gateway::start(options, world.engine(), world.clock, recorder).ok());
}

// A key with a pass phrase is among them: nobody is asked for one.
TEST(TlsListener, FilesWithoutAUsableCertificateOrKeyAreTold) {
    const std::string right = certificates().certificate("right");
    const std::string locked = certificates().key("locked");
    const std::string command = "openssl ec -aes256 -passout pass:secret -in " +
                                certificates().key("right") + " -out " + locked + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    for (const std::string& key : {locked, right, std::string("/dev/null")}) {
        const auto made = net::TlsContext::server(right, key);
        ASSERT_FALSE(made.ok()) << key;
        EXPECT_EQ(std::string(made.status().message())
                      .find("TLS: \"" + key + "\" has no key in PEM that needs no pass phrase: "),
                  0U)
            << made.status();
    }
    const auto made = net::TlsContext::server("/dev/null", certificates().key("right"));
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(std::string(made.status().message())
                  .find("TLS: \"/dev/null\" has no chain of certificates in PEM: "),
              0U)
        << made.status();
}

// ---- upstream ----

struct TlsUpstream {
    explicit TlsUpstream(const std::string& certificate)
        : context(TLS_server_method()), upstream(answer_with("over TLS")) {
        SSL_CTX_use_certificate_chain_file(context.context,
                                           certificates().certificate(certificate).c_str());
        SSL_CTX_use_PrivateKey_file(context.context, certificates().key(certificate).c_str(),
                                    SSL_FILETYPE_PEM);
        SSL_CTX_callback_ctrl(context.context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                              reinterpret_cast<void (*)()>(&TlsUpstream::on_name));
        SSL_CTX_set_tlsext_servername_arg(context.context, this);
        upstream.wrap = [this](int fd) {
            return std::make_unique<TlsTransport>(context.context, fd, true);
        };
    }
    static int on_name(SSL* ssl, int*, void* self) {
        if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)) {
            static_cast<TlsUpstream*>(self)->name = name;
        }
        return SSL_TLSEXT_ERR_OK;
    }
    Context context;
    std::string name;  // written before the first request is read
    ScriptedUpstream upstream;
};

GatewayWorldOptions https(const std::string& host) {
    GatewayWorldOptions options;
    options.gateway.upstream.tls = true;
    options.gateway.upstream.host = host;
    options.gateway.upstream.ca_file = certificates().certificate("right");
    return options;
}

TEST(TlsUpstreams, AreCheckedAndKept) {
    for (const std::string host : {"localhost", "127.0.0.1"}) {
        TlsUpstream tls("right");
        GatewayWorld world(tls.upstream.port(), https(host));
        Conn client = world.connect();
        for (int i = 0; i < 3; ++i) {
            client.send(get("/"));
            const Message answer = *client.read();
            EXPECT_EQ(answer.status(), 200) << host << world.recorder.wait_for(1).at(0).detail;
            EXPECT_EQ(answer.body, "over TLS");
        }
        EXPECT_EQ(tls.name, host == "localhost" ? "localhost" : "");
        EXPECT_LE(tls.upstream.connections(), 2U);  // ::1 may be tried first
    }
}

TEST(TlsUpstreams, WithAnotherNameAreRefused) {
    TlsUpstream tls("wrong");
    GatewayWorld world(tls.upstream.port(), https("localhost"));
    EXPECT_EQ(world.ask(get("/")).status(), 502);
    EXPECT_NE(world.recorder.wait_for(1).at(0).detail.find("certificate"), std::string::npos);
    EXPECT_EQ(tls.upstream.requests().size(), 0U);
    GatewayWorldOptions unchecked = https("localhost");
    unchecked.gateway.upstream.verify = false;
    GatewayWorld trusting(tls.upstream.port(), unchecked);
    EXPECT_EQ(trusting.ask(get("/")).status(), 200);
}

TEST(TlsUpstreams, ThatSpeakPlainAreRefused) {
    ScriptedUpstream plain(answer_with("plain"));
    GatewayWorldOptions options = https("127.0.0.1");
    options.gateway.upstream.connect_timeout = std::chrono::seconds(6);
    GatewayWorld world(plain.port(), options);
    Conn client = world.connect();
    client.send(get("/"));
    // The upstream waits for the end of what it takes for a request line.
    ASSERT_TRUE(world.advance_until([&] { return client.readable(0); }));
    EXPECT_EQ(client.read()->status(), 504);
}

}  // namespace
}  // namespace ration::testing
