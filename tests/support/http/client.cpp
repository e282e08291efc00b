#include "support/http/client.hpp"

#include <array>
#include <cstdlib>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "support/wait_until.hpp"

namespace tenure::test {

namespace asio = boost::asio;

HttpClient::HttpClient(std::uint16_t port, int receive_buffer) {
  socket_.open(asio::ip::tcp::v4());
  if (receive_buffer > 0) {
    socket_.set_option(asio::socket_base::receive_buffer_size(receive_buffer));
  }
  socket_.connect({asio::ip::address_v4::loopback(), port});
}

void HttpClient::send(std::string_view bytes) {
  boost::system::error_code
      ignored;  // The server may have closed the connection; the reply shows it.
  asio::write(socket_, asio::buffer(bytes), ignored);
}

bool HttpClient::read_some() {
  std::array<char, 65536> chunk{};
  std::size_t count = 0;
  bool is_open = true;
  socket_.async_read_some(asio::buffer(chunk), [&](const auto& error, std::size_t bytes) {
    count = bytes;
    is_open = !error;
  });
  loop_.restart();
  if (loop_.run_for(test_timeout) == 0) {
    is_late_ = true;
    socket_.cancel();
    loop_.run();
  }
  received_.append(chunk.data(), count);
  return is_open && !is_late_;
}

std::string HttpClient::read_until(std::string_view marker) {
  while (received_.find(marker) == std::string::npos && read_some()) {
  }
  return is_late_ ? "nothing more came; so far: " + received_ : received_;
}

std::string HttpClient::read_all() {
  while (read_some()) {
  }
  return is_late_ ? "it was not closed; so far: " + received_ : received_;
}

std::string HttpClient::get(std::string_view target, std::string_view fields) {
  received_.clear();
  send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) +
       "\r\n");
  const auto head = read_until("\r\n\r\n");
  const auto at = head.find("Content-Length: ");
  const auto body = head.find("\r\n\r\n");
  if (at == std::string::npos || body == std::string::npos) {
    return head;
  }
  const auto length = std::strtoull(head.c_str() + at + 16, nullptr, 10);
  while (received_.size() < body + 4 + length && read_some()) {
  }
  return received_;
}

std::string http_get(std::uint16_t port, std::string_view target, std::string_view fields) {
  return HttpClient(port).get(target, fields);
}

std::string http_post(std::uint16_t port, std::string_view target, std::string_view body,
                      std::string_view fields) {
  HttpClient client(port);
  client.send("POST " + std::string(target) +
              " HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n" +
              std::string(body));
  return client.read_all();
}

std::string body_of(const std::string& answer) {
  const auto at = answer.find("\r\n\r\n");
  return at == std::string::npos ? "" : answer.substr(at + 4);
}

int status_of(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::atoi(answer.c_str() + 9);
}

}  // namespace tenure::test
