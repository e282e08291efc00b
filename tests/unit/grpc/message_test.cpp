#include "grpc/message.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include "grpc/status.hpp"

namespace tenure::test {
namespace {

using grpc::MessageReader;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string framed(const std::string& text) {
  google::protobuf::StringValue message;
  message.set_value(text);
  std::string out;
  grpc::append_framed(message, out);
  return out;
}

std::string text_in(std::string_view bytes) {
  google::protobuf::StringValue message;
  EXPECT_TRUE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  return message.value();
}

TEST(GrpcMessage, a_message_is_read_from_any_fragmentation) {
  const std::string stream = framed("a") + framed("") + framed(std::string(300, 'b'));
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    MessageReader reader(1000);
    std::vector<std::string> found;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.add(bytes_of(stream.substr(at, piece)));
      while (const auto message = reader.next()) {
        found.push_back(text_in(*message));
      }
    }
    ASSERT_EQ(found, (std::vector<std::string>{"a", "", std::string(300, 'b')})) << piece;
    EXPECT_EQ(reader.waiting(), 0U);
  }
}

TEST(GrpcMessage, a_too_large_message_is_detected_from_its_prefix) {
  MessageReader reader(100);
  reader.add(bytes_of(framed(std::string(99, 'x')).substr(0, 5)));

  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.error(), MessageReader::Error::too_large);
}

TEST(GrpcMessage, a_message_of_exactly_the_limit_is_read) {
  const auto message = framed(std::string(98, 'x'));
  MessageReader reader(message.size() - 5);
  reader.add(bytes_of(message));

  EXPECT_TRUE(reader.next());
  EXPECT_EQ(reader.error(), MessageReader::Error::none);
}

TEST(GrpcMessage, a_compressed_message_is_rejected) {
  auto message = framed("a");
  message[0] = 1;
  MessageReader reader(100);
  reader.add(bytes_of(message));

  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.error(), MessageReader::Error::compressed);
}

TEST(GrpcMessage, a_reader_keeps_nothing_after_an_error) {
  MessageReader reader(1);
  reader.add(bytes_of(framed("abc")));
  EXPECT_FALSE(reader.next());
  const auto before = reader.waiting();

  reader.add(bytes_of(std::string(1000, 'x')));

  EXPECT_EQ(reader.waiting(), before);
}

TEST(GrpcStatus, messages_travel_as_printable_ascii) {
  EXPECT_EQ(grpc::percent_encoded("plain text, 100"), "plain text, 100");
  EXPECT_EQ(grpc::percent_encoded("50 %\r\ngrpc-status: 0"), "50 %25%0D%0Agrpc-status: 0");
  EXPECT_EQ(grpc::percent_encoded("\xC3\xA4\x7F"), "%C3%A4%7F");
}

TEST(GrpcStatus, every_code_has_the_name_of_the_protocol) {
  EXPECT_STREQ(grpc::name_of(grpc::StatusCode::ok), "OK");
  EXPECT_STREQ(grpc::name_of(grpc::StatusCode::loss), "DATA_LOSS");
  EXPECT_STREQ(grpc::name_of(grpc::StatusCode::unauthenticated), "UNAUTHENTICATED");
}

}  // namespace
}  // namespace tenure::test
