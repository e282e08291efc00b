#include "sys/json_writer.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <tenure/ids.hpp>

namespace tenure::sys {
namespace {

std::string written(std::string_view text) {
  JsonWriter json;
  json.value(text);
  return json.take();
}

// A comma too many or too few makes the whole document unreadable.
TEST(JsonWriter, commas_separate_fields_and_elements_at_every_depth) {
  JsonWriter json;
  json.begin_object().field("a", 1).array("list", [&] {
    json.value("x").value(2).object([&] { json.field("b", true).field("c", false); });
    json.object([] {}).begin_array().end_array();
  });
  json.object("empty", [] {}).field("last", "y").end_object();

  EXPECT_EQ(json.text(),
            R"({"a":1,"list":["x",2,{"b":true,"c":false},{},[]],"empty":{},"last":"y"})");
}

// Names come from other clients: a control character must not end a line of a log or move a cursor.
TEST(JsonWriter, control_characters_are_escaped) {
  EXPECT_EQ(written(std::string("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(written("\n\r\t\"\\"), R"("\n\r\t\"\\")");
  EXPECT_EQ(written("\u009b31m"), R"("\u009b31m")");
}

// One invalid byte must not make a document unreadable for every client.
TEST(JsonWriter, bytes_that_are_no_utf8_are_written_as_hexadecimal_digits) {
  EXPECT_EQ(written("a\xff"), R"("a\\xff")");
  EXPECT_EQ(written("\xed\xa0\x80"), R"("\\xed\\xa0\\x80")");  // a surrogate
  EXPECT_EQ(written("\xc0\xaf"), R"("\\xc0\\xaf")");           // an overlong '/'
  EXPECT_EQ(written("\xe2\x82"), R"("\\xe2\\x82")");           // cut off
}

TEST(JsonWriter, line_separators_and_other_utf8_are_written_as_they_are) {
  EXPECT_EQ(written("\u2028\u2029"), "\"\u2028\u2029\"");
  EXPECT_EQ(written("\u00fc\U0001F512"), "\"\u00fc\U0001F512\"");
}

TEST(JsonWriter, keys_are_escaped_like_values) {
  JsonWriter json;
  json.object([&] { json.field("a\"\n", 1); });

  EXPECT_EQ(json.text(), R"({"a\"\n":1})");
}

// Readers that keep numbers as doubles round 2^53 + 1 to 2^53, which is the token of another hold.
TEST(JsonWriter, ids_are_strings_with_all_their_digits) {
  JsonWriter json;
  json.object([&] {
    json.id("lease", (1ULL << 53U) + 1).field("token", FencingToken{~0ULL});
    json.key("list").begin_array().id(7).end_array();
  });

  EXPECT_EQ(json.text(),
            R"({"lease":"9007199254740993","token":"18446744073709551615","list":["7"]})");
}

TEST(JsonWriter, counts_are_numbers_with_all_their_digits) {
  JsonWriter json;
  json.begin_array()
      .value(std::numeric_limits<std::uint64_t>::max())
      .value(std::numeric_limits<std::int64_t>::min())
      .value(std::uint8_t{200})
      .end_array();

  EXPECT_EQ(json.text(), "[18446744073709551615,-9223372036854775808,200]");
}

TEST(JsonWriter, doubles_have_six_significant_digits_unless_all_are_asked_for) {
  JsonWriter json;
  json.begin_array().value(0.1).value(1.0 / 3).value(1234567.0).value(1e-7).value(0.0);
  json.exact_value(1.0 / 3).exact_value(1234567.0).end_array();

  EXPECT_EQ(json.text(), "[0.1,0.333333,1.23457e+06,1e-07,0,0.3333333333333333,1234567]");
}

// `inf` and `nan` are no JSON: a reader would refuse the whole document.
TEST(JsonWriter, numbers_that_are_not_finite_are_null) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  JsonWriter json;
  json.begin_array().value(infinity).value(-infinity).exact_value(infinity);
  json.value(std::numeric_limits<double>::quiet_NaN()).value(std::optional<double>());
  json.value(std::optional(2.5)).end_array();

  EXPECT_EQ(json.text(), "[null,null,null,null,null,2.5]");
}

// The way back from \xff is ambiguous; base64 gives a client its own bytes.
TEST(JsonWriter, bytes_that_are_no_utf8_are_base64_with_an_encoding_field) {
  JsonWriter json;
  json.object([&] { json.bytes("owner", "\xff").bytes("name", "a\n"); });

  EXPECT_EQ(json.text(), R"({"owner":"/w==","owner_encoding":"base64","name":"a\n"})");
}

}  // namespace
}  // namespace tenure::sys
