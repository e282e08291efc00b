#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/process_counts.hpp"
#include "support/rpc/certificates.hpp"
#include "support/rpc/service.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// Returns the error of connect() and checks that it neither hangs nor leaks.
class RpcTls : public ::testing::Test {
 protected:
  [[nodiscard]] static std::string trusting(const Authority& authority) {
    return "?tls_ca=" + authority.file().string();
  }
  [[nodiscard]] static std::string showing(const Certificate& certificate) {
    return "&tls_cert=" + certificate.file.string() + "&tls_key=" + certificate.key.string();
  }

  /// The error, which must come long before the client would lose test_timeout.
  [[nodiscard]] static Error refusal(const std::string& url) {
    const auto threads = thread_count();
    const auto sockets = socket_count();
    const auto began = std::chrono::steady_clock::now();
    const auto refused = connect(url, {.request_timeout = 60s});
    EXPECT_LT(std::chrono::steady_clock::now() - began, 20s) << "it waited for nothing";
    EXPECT_TRUE(eventually([&] { return thread_count() <= threads; }));
    EXPECT_TRUE(eventually([&] { return socket_count() <= sockets; }));
    return refused ? Error{.code = Errc{}, .detail = "it connects"} : refused.error();
  }
  static void expect(const Error& error, Errc code, const std::string& words) {
    EXPECT_EQ(error, code) << to_string(error);
    EXPECT_NE(error.detail.find(words), std::string::npos) << error.detail;
  }

  Authority ours;
  Authority theirs;
  Certificate server = ours.sign({.name = "server"});
};

TEST_F(RpcTls, the_ca_is_enough_if_the_server_requests_no_client_certificate) {
  const RpcService service({.tls = Authority::server_files(server)});

  const auto client = connect(service.url(trusting(ours)));

  ASSERT_TRUE(client) << to_string(client.error());
  EXPECT_TRUE(client->mutex("a").lock());
}

TEST_F(RpcTls, a_client_certificate_is_sent_on_request) {
  const RpcService service({.tls = ours.mutual_files(server)});

  const auto client = connect(service.url(trusting(ours) + showing(ours.sign({.name = "client"}))));

  ASSERT_TRUE(client) << to_string(client.error());
  EXPECT_TRUE(client->mutex("a").lock());
}

TEST_F(RpcTls, a_server_is_accepted_by_any_name_of_its_certificate) {
  const RpcService service({.tls = Authority::server_files(server)});
  const auto port = service.address().substr(service.address().find(':'));

  EXPECT_TRUE(connect("tenure://localhost" + port + trusting(ours)));
}

TEST_F(RpcTls, a_server_of_another_ca_is_rejected) {
  const RpcService service({.tls = Authority::server_files(server)});

  expect(refusal(service.url(trusting(theirs))), Errc::permission_denied, "check that tls_ca");
}

TEST_F(RpcTls, a_server_with_an_expired_certificate_is_rejected) {
  const RpcService service(
      {.tls = Authority::server_files(ours.sign({.name = "old", .hours = -1}))});

  expect(refusal(service.url(trusting(ours))), Errc::permission_denied, "has expired");
}

TEST_F(RpcTls, a_server_with_another_name_is_rejected) {
  const RpcService service({.tls = Authority::server_files(
                                ours.sign({.name = "far", .alternatives = "DNS:far.example"}))});
  const auto port = service.address().substr(service.address().find(':'));

  for (const auto& host : {std::string("127.0.0.1"), std::string("localhost")}) {
    expect(refusal("tenure://" + host + port + trusting(ours)), Errc::permission_denied,
           "connect by a name that the certificate contains");
  }
}

// The server reports the error only after the client has completed its side of the handshake.
TEST_F(RpcTls, a_missing_client_certificate_is_reported) {
  const RpcService service({.tls = ours.mutual_files(server)});

  for (int round = 0; round < 10; ++round) {
    expect(refusal(service.url(trusting(ours))), Errc::permission_denied, "tls_cert and tls_key");
  }
}

TEST_F(RpcTls, a_wrong_client_certificate_is_reported) {
  const RpcService service({.tls = ours.mutual_files(server)});
  const auto foreign = theirs.sign({.name = "client"});
  const auto old = ours.sign({.name = "old", .hours = -1});

  for (const auto& shown : {foreign, old}) {
    expect(refusal(service.url(trusting(ours) + showing(shown))), Errc::permission_denied,
           "tls_cert and tls_key");
  }
}

TEST_F(RpcTls, unusable_tls_files_are_rejected_with_the_position) {
  const auto client = ours.sign({.name = "client"});
  const auto other = ours.sign({.name = "other"});
  const auto wrong = [](const std::string& options) { return refusal("tenure://a?" + options); };
  write_content(ours.folder() / "empty.pem", "");
  write_content(ours.folder() / "text.pem", "certainly\n");
  const auto own = [&](const std::string& name) { return (ours.folder() / name).string(); };

  expect(wrong("tls_ca=/nowhere/ca.pem"), Errc::invalid_argument, "at 18: cannot read /nowhere");
  expect(wrong("tls_ca=" + own("")), Errc::invalid_argument, "is empty or not a file");
  expect(wrong("tls_ca=" + own("empty.pem")), Errc::invalid_argument, "is empty or not a file");
  expect(wrong("tls_ca=" + own("text.pem")), Errc::invalid_argument, "tls_ca cannot be used");
  expect(wrong("tls_cert=" + client.file.string()), Errc::invalid_argument, "go together");
  expect(wrong("tls_cert=" + own("text.pem") + "&tls_key=" + client.key.string()),
         Errc::invalid_argument, "tls_cert cannot be used");
  expect(wrong("tls_cert=" + client.file.string() + "&tls_key=" + client.file.string()),
         Errc::invalid_argument, "tls_key cannot be used");
  expect(wrong("tls_cert=" + client.file.string() + "&tls_key=" + other.key.string()),
         Errc::invalid_argument, "at 20: tls_key");
}

TEST_F(RpcTls, a_plaintext_client_of_a_TLS_server_gets_a_hint) {
  const RpcService service({.tls = Authority::server_files(server)});

  for (int round = 0; round < 10; ++round) {
    expect(refusal(service.url()), Errc::unavailable, "set tls_ca to its CA file");
  }
}

TEST_F(RpcTls, a_TLS_client_of_a_plaintext_server_gets_a_hint) {
  const RpcService service;

  for (int round = 0; round < 10; ++round) {
    expect(refusal(service.url(trusting(ours))), Errc::unavailable, "the server may not use TLS");
  }
}

}  // namespace
}  // namespace tenure::test
