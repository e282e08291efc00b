#include "support/etcd/server.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <openssl/evp.h>
#include <signal.h>

#include "support/net/free_port.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

std::string base64(const std::string& text) {
  std::string encoded(4 * ((text.size() + 2) / 3) + 1, '\0');
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL's bytes are unsigned.
  const auto size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()));
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  encoded.resize(static_cast<std::size_t>(size));
  return encoded;
}

std::string from_base64(const std::string& text) {
  std::string decoded(text.size(), '\0');
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL takes bytes.
  const auto size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()));
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  const auto padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  decoded.resize(static_cast<std::size_t>(std::max(0, size - padding)));
  return decoded;
}

/// The text of a field of one JSON object; empty if it is not there.
std::string field_of(std::string_view json, const std::string& name) {
  const auto mark = '"' + name + "\":\"";
  const auto at = json.find(mark);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto begin = at + mark.size();
  return std::string(json.substr(begin, json.find('"', begin) - begin));
}

std::int64_t number_of(std::string_view json, const std::string& name) {
  const auto text = field_of(json, name);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Sends a request and returns the response up to the end of the connection; empty without one.
std::string talk(std::uint16_t port, const std::string& request) {
  boost::asio::io_context loop;
  boost::asio::ip::tcp::socket socket(loop);
  boost::system::error_code error;
  (void)socket.connect({boost::asio::ip::address_v4::loopback(), port}, error);
  if (error) {
    return {};
  }
  boost::asio::write(socket, boost::asio::buffer(request), error);
  std::string answer;
  boost::asio::read(socket, boost::asio::dynamic_buffer(answer), error);
  return answer;
}

std::string end_of_prefix(std::string prefix) {
  ++prefix.back();
  return prefix;
}

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return std::move(content).str();
}

}  // namespace

EtcdServer::EtcdServer(Options options) : options_(std::move(options)) {
  constexpr int attempts_max = 5;
  for (int attempt = 1;; ++attempt) {
    // Another process may bind the port before the server does.
    take_ports();
    if (!options_.starts) {
      return;
    }
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == attempts_max) {
        throw;
      }
    }
  }
}

EtcdServer::~EtcdServer() = default;

void EtcdServer::take_ports() {
  port_ = free_port();
  peer_port_ = free_port();
  metrics_port_ = free_port();
  tls_port_ = options_.has_tls ? free_port() : 0;
}

std::string EtcdServer::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

std::string EtcdServer::peer_url() const {
  return "http://127.0.0.1:" + std::to_string(peer_port_);
}

std::string EtcdServer::url(std::string_view rest) const {
  return "etcd://" + address() + std::string(rest);
}

std::vector<std::string> EtcdServer::command() const {
  const auto client = "http://" + address();
  const auto all =
      options_.has_tls ? client + ",https://127.0.0.1:" + std::to_string(tls_port_) : client;
  std::vector<std::string> words{"etcd",
                                 "--name",
                                 options_.name,
                                 "--data-dir",
                                 folder_ / "data",
                                 "--listen-client-urls",
                                 all,
                                 "--advertise-client-urls",
                                 client,
                                 "--listen-peer-urls",
                                 peer_url(),
                                 "--initial-advertise-peer-urls",
                                 peer_url(),
                                 "--listen-metrics-urls",
                                 "http://127.0.0.1:" + std::to_string(metrics_port_),
                                 "--initial-cluster",
                                 options_.initial_cluster.empty() ? options_.name + "=" + peer_url()
                                                                  : options_.initial_cluster,
                                 "--logger=zap",
                                 "--log-level",
                                 "warn"};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  return words;
}

void EtcdServer::launch() {
  process_.emplace(Process::Command{.words = command(), .log = folder_ / "log"});
}

void EtcdServer::await() {
  if (!eventually([this] { return is_healthy() || process_->has_ended(); }) || !is_healthy()) {
    throw std::runtime_error("etcd does not start (tools/setup.sh test installs it): " +
                             content_of(folder_ / "log"));
  }
}

void EtcdServer::kill() {
  process_->signal(SIGKILL);
  process_->wait();
}

bool EtcdServer::is_healthy() const {
  return get(metrics_port_, "/health").find("\"true\"") != std::string::npos;
}

std::string EtcdServer::get(std::uint16_t port, const std::string& path) const {
  return talk(port, "GET " + path + " HTTP/1.0\r\nHost: etcd\r\n\r\n");
}

std::string EtcdServer::ask(const std::string& path, const std::string& json) const {
  return talk(port_, "POST /v3/" + path + " HTTP/1.0\r\nHost: etcd\r\n" +
                         (token_.empty() ? "" : "Authorization: " + token_ + "\r\n") +
                         "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + json);
}

void EtcdServer::log_in(const std::string& user, const std::string& password) {
  token_ = field_of(
      ask("auth/authenticate", R"({"name":")" + user + R"(","password":")" + password + "\"}"),
      "token");
}

backends::etcd::pb::RangeResponse EtcdServer::keys(const std::string& prefix) const {
  const auto answer = ask("kv/range", R"({"key":")" + base64(prefix) + R"(","range_end":")" +
                                          base64(end_of_prefix(prefix)) +
                                          R"(","sort_order":"ASCEND","sort_target":"CREATE"})");
  backends::etcd::pb::RangeResponse found;
  std::string_view rest = answer;
  auto at = rest.find("{\"key\":");
  while (at != std::string_view::npos) {
    const auto object = rest.substr(at, rest.find('}', at) - at);
    auto& one = *found.add_kvs();
    one.set_key(from_base64(field_of(object, "key")));
    one.set_value(from_base64(field_of(object, "value")));
    one.set_create_revision(number_of(object, "create_revision"));
    one.set_mod_revision(number_of(object, "mod_revision"));
    one.set_lease(number_of(object, "lease"));
    at = rest.find("{\"key\":", at + 1);
  }
  found.set_count(found.kvs_size());
  return found;
}

void EtcdServer::put(const std::string& key, const std::string& value) const {
  (void)ask("kv/put", R"({"key":")" + base64(key) + R"(","value":")" + base64(value) + "\"}");
}

void EtcdServer::remove(const std::string& key) const {
  (void)ask("kv/deleterange", R"({"key":")" + base64(key) + "\"}");
}

void EtcdServer::revoke(std::int64_t lease) const {
  (void)ask("lease/revoke", R"({"ID":")" + std::to_string(lease) + "\"}");
}

void EtcdServer::compact() const {
  put("compacted", "now");
  const auto revision = number_of(ask("kv/range", R"({"key":"AA=="})"), "revision");
  (void)ask("kv/compaction",
            R"({"revision":")" + std::to_string(revision) + R"(","physical":true})");
}

bool EtcdServer::leads() const {
  const auto status = ask("maintenance/status", "{}");
  return !field_of(status, "leader").empty() &&
         field_of(status, "leader") == field_of(status, "member_id");
}

std::int64_t EtcdServer::count_of(std::string_view series) const {
  std::istringstream lines(get(metrics_port_, "/metrics"));
  std::int64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series)) {
      sum += static_cast<std::int64_t>(std::stod(line.substr(line.rfind(' '))));
    }
  }
  return sum;
}

std::unique_ptr<Process> EtcdServer::begin_etcdctl(std::vector<std::string> words) const {
  words.insert(words.begin(), {"etcdctl", "--endpoints", "http://" + address()});
  return std::make_unique<Process>(
      Process::Command{.words = std::move(words), .log = folder_ / "etcdctl"});
}

void EtcdServer::etcdctl(std::vector<std::string> words) const {
  if (begin_etcdctl(std::move(words))->wait() != 0) {
    throw std::runtime_error("etcdctl failed: " + content_of(folder_ / "etcdctl"));
  }
}

EtcdServer& shared_etcd() {
  static EtcdServer server;
  return server;
}

}  // namespace tenure::test
