#include <future>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "support/http/service.hpp"
#include "support/rpc/certificates.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TEST(HttpLimits, a_connection_serves_many_requests) {
  HttpService service;
  HttpClient client(service.port);

  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(status_of(client.get("/healthz")), 200);
    EXPECT_EQ(status_of(client.get("/v1/status")), 200);
  }
}

TEST(HttpLimits, requests_sent_at_once_are_answered_in_order) {
  HttpService service;
  HttpClient client(service.port);

  client.send("GET /v1/status HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto answers = client.read_all();

  EXPECT_LT(answers.find("\"cluster\""), answers.find("\r\n\r\nok\n")) << answers;
}

TEST(HttpLimits, other_methods_are_refused_with_the_allowed_ones) {
  HttpService service;
  for (const auto* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    HttpClient client(service.port);
    client.send(std::string(method) +
                " /v1/locks HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    const auto answer = client.read_all();
    EXPECT_EQ(status_of(answer), 405) << method;
    EXPECT_NE(answer.find("Allow: GET, HEAD\r\n"), std::string::npos);
  }
}

TEST(HttpLimits, head_has_the_length_and_not_the_body) {
  HttpService service;
  HttpClient client(service.port);

  client.send("HEAD /healthz HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto answer = client.read_all();

  EXPECT_EQ(status_of(answer), 200);
  EXPECT_NE(answer.find("Content-Length: 3\r\n"), std::string::npos) << answer;
  EXPECT_EQ(body_of(answer), "");
}

TEST(HttpLimits, every_response_has_the_security_headers) {
  HttpService service;
  for (const auto* target : {"/", "/metrics", "/v1/locks", "/nowhere"}) {
    const auto answer = service.get(target);
    for (const auto* field :
         {"X-Content-Type-Options: nosniff\r\n", "Cache-Control: no-store\r\n",
          "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"}) {
      EXPECT_NE(answer.find(field), std::string::npos) << target << " without " << field;
    }
  }
}

// DNS rebinding: a foreign page resolves its own host name to our address and reads through the
// browser of a user.
TEST(HttpLimits, a_foreign_host_name_is_refused) {
  HttpService service({.hosts = "locks.example,other.example"});
  const auto status = [&](std::string_view host) {
    HttpClient client(service.port);
    client.send("GET /v1/status HTTP/1.1\r\nHost: " + std::string(host) +
                "\r\nConnection: close\r\n\r\n");
    return status_of(client.read_all());
  };

  for (const auto* known : {"localhost", "localhost:7421", "127.0.0.1:7421", "[::1]", "[::1]:7421",
                            "10.1.2.3", "locks.example", "other.example:80"}) {
    EXPECT_EQ(status(known), 200) << known;
  }
  for (const auto* foreign : {"evil.example", "locks.example.evil", "example", "localhost.evil"}) {
    EXPECT_EQ(status(foreign), 421) << foreign;
  }
}

TEST(HttpLimits, too_long_a_header_and_too_long_a_body_are_refused) {
  HttpService service;
  HttpClient header(service.port);
  header.send("GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n");
  EXPECT_EQ(status_of(header.read_all()), 431);

  HttpClient body(service.port);
  body.send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(70'000, 'x'));
  EXPECT_EQ(status_of(body.read_all()), 413);
}

TEST(HttpLimits, invalid_http_is_refused) {
  HttpService service;
  for (const auto* noise :
       {"\x16\x03\x01\x02\x00\x01\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET a HTTP/1.1\r\nConnection: close\r\n\r\n"}) {
    HttpClient client(service.port);
    client.send(noise);
    EXPECT_EQ(status_of(client.read_all()), 400) << noise;
  }
  EXPECT_EQ(status_of(service.get("/healthz")), 200);
}

// A client that sends its header byte by byte (slowloris) must not keep its connection.
TEST(HttpLimits, a_slow_header_and_an_idle_connection_are_closed) {
  HttpService service({.request_time = 50ms, .idle_time = 50ms});
  HttpClient slow(service.port);
  slow.send("GET / HT");
  EXPECT_EQ(slow.read_all(), "");

  HttpClient idle(service.port);
  EXPECT_EQ(status_of(idle.get("/healthz")), 200);
  EXPECT_EQ(status_of(idle.read_all()), 200);  // Only that response, then end of file.
}

// A client that starts a TLS handshake and then stops must not keep its connection either.
TEST(HttpLimits, a_slow_tls_handshake_is_closed) {
  Authority authority;
  HttpService service({.tls = Authority::server_files(authority.sign({})), .request_time = 50ms});
  HttpClient silent(service.port);
  HttpClient slow(service.port);
  slow.send("\x16\x03\x01");

  EXPECT_EQ(silent.read_all(), "");
  EXPECT_EQ(slow.read_all(), "");
}

/// GET /healthz over TLS, on a connection that stays open. Any certificate is accepted.
class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port) {
    stream_.next_layer().connect({boost::asio::ip::address_v4::loopback(), port});
    stream_.handshake(boost::asio::ssl::stream_base::client, error_);
    if (!error_) {
      boost::asio::write(stream_, boost::asio::buffer(std::string("GET /healthz HTTP/1.1\r\n\r\n")),
                         error_);
    }
    if (!error_) {
      boost::asio::read_until(stream_, boost::asio::dynamic_buffer(answer_), "\r\n", error_);
    }
  }
  [[nodiscard]] bool is_answered() const { return !error_ && status_of(answer_) == 200; }

 private:
  boost::asio::io_context loop_;
  boost::asio::ssl::context context_{boost::asio::ssl::context::tls_client};
  boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream_{loop_, context_};
  boost::system::error_code error_;
  std::string answer_;
};

// A TLS handshake is the most expensive request of an unauthenticated client.
TEST(HttpLimits, a_tls_handshake_beyond_the_rate_is_closed_and_counted) {
  Authority authority;
  HttpService service({.tls = Authority::server_files(authority.sign({})),
                       .handshakes = {.per_second = {.total_max = 0, .each_max = 0}},
                       .request_time = 1h});
  HttpClient client(service.port);
  client.send("\x16\x03\x01");

  EXPECT_EQ(client.read_all(), "");
  EXPECT_NE(service.metrics.text().find("limit=\"http_tls_handshakes\"} 1"), std::string::npos);
}

TEST(HttpLimits, a_complete_tls_handshake_makes_room_for_the_next) {
  Authority authority;
  HttpService service({.tls = Authority::server_files(authority.sign({})),
                       .handshakes = {.in_progress = {.total_max = 1, .each_max = 1}}});

  const TlsClient first(service.port);
  const TlsClient second(service.port);

  EXPECT_TRUE(first.is_answered());
  EXPECT_TRUE(second.is_answered());
}

TEST(HttpLimits, a_connection_over_the_limit_gets_503) {
  HttpService service({.connections_max = 2});
  std::vector<std::unique_ptr<HttpClient>> kept;
  for (int i = 0; i < 2; ++i) {
    kept.push_back(std::make_unique<HttpClient>(service.port));
    EXPECT_EQ(status_of(kept.back()->get("/healthz")), 200);
  }

  EXPECT_EQ(status_of(HttpClient(service.port).read_all()), 503);
  kept.clear();
  EXPECT_TRUE(eventually([&] { return status_of(service.get("/v1/status")) == 200; }));
  EXPECT_NE(service.get("/metrics").find("limit=\"http_connections_max\""), std::string::npos);
}

// A load balancer must not take a busy member for a failed one.
TEST(HttpLimits, health_is_answered_when_all_connections_are_in_use) {
  HttpService service({.connections_max = 2});
  std::vector<std::unique_ptr<HttpClient>> kept;
  for (int i = 0; i < 2; ++i) {
    kept.push_back(std::make_unique<HttpClient>(service.port));
    EXPECT_EQ(status_of(kept.back()->get("/healthz")), 200);
  }
  for (int i = 0; i < 300; ++i) {
    kept.push_back(std::make_unique<HttpClient>(service.port));  // Idle: sends no request.
  }

  EXPECT_EQ(status_of(service.get("/healthz")), 200);
  EXPECT_EQ(status_of(service.get("/readyz")), 200);
  EXPECT_EQ(status_of(service.get("/v1/status")), 503);
}

TEST(HttpLimits, an_address_cannot_use_all_connections) {
  HttpService service({.connections_max = 4});
  std::vector<std::unique_ptr<HttpClient>> kept;
  for (int i = 0; i < 3; ++i) {
    kept.push_back(std::make_unique<HttpClient>(service.port));
    EXPECT_EQ(status_of(kept.back()->get("/v1/status")), 200);
  }

  EXPECT_EQ(status_of(service.get("/v1/status")), 503);
  kept.pop_back();
  EXPECT_TRUE(eventually([&] { return status_of(service.get("/v1/status")) == 200; }));
}

// While the thread of the store hangs, requests fail in time and health still answers.
TEST(HttpLimits, a_store_that_does_not_answer_is_unavailable) {
  HttpService service({.answer_time = 50ms});
  std::promise<void> may_go;
  boost::asio::post(service.store.loop(), [&] { may_go.get_future().wait(); });

  EXPECT_EQ(status_of(service.get("/readyz")), 503);
  EXPECT_EQ(status_of(service.get("/v1/locks")), 503);
  EXPECT_EQ(status_of(service.get("/healthz")), 200);

  may_go.set_value();
  EXPECT_TRUE(eventually([&] { return status_of(service.get("/readyz")) == 200; }));
}

TEST(HttpLimits, a_port_in_use_is_an_error_that_names_it) {
  HttpService service;
  server::Metrics metrics("1");
  MemoryStore store;
  server::http::Server second(store, metrics,
                              {.address = {.host = "127.0.0.1", .port = service.port}});

  const auto started = second.start();

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error(), Errc::unavailable);
  EXPECT_NE(started.error().detail.find(std::to_string(service.port)), std::string::npos);
}

}  // namespace
}  // namespace tenure::test
