#include "wire/errors.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/error.hpp>

#include "backends/tenured/proto_types.hpp"
#include "wire/answers.hpp"

namespace tenure::test {
namespace {

/// All there are: they are numbered from 1 on, and each has a name.
std::vector<Errc> all_codes() {
  std::vector<Errc> codes;
  for (int number = 1; to_string(static_cast<Errc>(number)) != "unknown"; ++number) {
    codes.push_back(static_cast<Errc>(number));
  }
  return codes;
}

// A code that the wire does not know would arrive as `unavailable`, and be asked again for ever.
TEST(WireErrors, every_code_arrives_in_a_session_as_it_was_sent) {
  ASSERT_EQ(all_codes().back(), Errc::unsupported);
  for (const auto code : all_codes()) {
    v1::Outcome sent;
    wire::write(Error{.code = code, .detail = "why"}, sent);
    v1::Outcome arrived;
    ASSERT_TRUE(arrived.ParseFromString(sent.SerializeAsString()));

    EXPECT_EQ(backends::tenured::error_from(arrived.refused()),
              (Error{.code = code, .detail = "why"}));
  }
}

TEST(WireErrors, every_code_has_its_own_name_on_the_wire) {
  for (const auto code : all_codes()) {
    std::string name = "CODE_" + std::string(to_string(code));
    std::ranges::transform(name, name.begin(), [](unsigned char letter) {
      return static_cast<char>(std::toupper(letter));
    });

    EXPECT_EQ(v1::Code_Name(wire::code_of(code)), name);
  }
  EXPECT_EQ(static_cast<std::size_t>(v1::Code_MAX), all_codes().size());
}

TEST(WireErrors, every_code_has_a_status_other_than_unknown) {
  for (const auto code : all_codes()) {
    EXPECT_NE(wire::status_of({.code = code}).code, grpc::StatusCode::unknown) << to_string(code);
    EXPECT_FALSE(wire::status_of({.code = code}).ok()) << to_string(code);
  }
}

// A newer server's.
TEST(WireErrors, an_unknown_code_is_unavailable) {
  v1::Refused newer;
  newer.set_code(static_cast<v1::Code>(v1::Code_MAX + 1));

  EXPECT_EQ(backends::tenured::error_from(newer), Errc::unavailable);
}

}  // namespace
}  // namespace tenure::test
