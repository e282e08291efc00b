#include "history/lines.hpp"

#include <array>
#include <istream>
#include <utility>

#include <boost/json.hpp>

#include "sys/json_writer.hpp"

namespace tenure::history {
namespace {

namespace json = boost::json;

constexpr std::array kind_names{
    "history", "invoke",   "queued",    "granted", "failed", "renewed", "lost",
    "release", "released", "downgrade", "leave",   "read",   "write",   "watching",
    "watch",   "died",     "fault",     "healed",  "end",
};
constexpr std::array policy_names{"wait", "try", "reenter"};

/// Writes the non-empty fields of an object.
class Fields {
 public:
  explicit Fields(sys::JsonWriter& json) : json_(json) {}

  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      json_.field(name, value);
    }
  }
  void number(std::string_view name, auto value) { json_.field(name, value); }
  void maybe(std::string_view name, const auto& value) {
    if (value.has_value()) {
      number(name, *value);
    }
  }
  void list(std::string_view name, const auto& values, const auto& write) {
    if (!values.empty()) {
      json_.array(name, [&] {
        for (const auto& value : values) {
          write(json_, value);
        }
      });
    }
  }

 private:
  sys::JsonWriter& json_;
};

void write_item(sys::JsonWriter& json, const Item& item) {
  json.object([&] {
    Fields fields(json);
    fields.text("name", item.name);
    if (item.permits.has_value()) {
      fields.number("permits", item.permits->wanted);
      fields.number("capacity", item.permits->capacity);
    } else {
      fields.text("mode", tenure::to_string(item.mode));
    }
    if (item.range.has_value()) {
      json.field("start", item.range->start);
      if (item.range->end.has_value()) {
        json.field("end", *item.range->end);
      }
    }
  });
}

// Parsing. A wrong type or value throws and from_line() converts it to an error, because Boost.JSON
// reports its errors by exceptions as well.
struct ParseError {
  std::string why;
};

std::string text_of(const json::value& value) {
  const auto* text = value.if_string();
  if (text == nullptr) {
    throw ParseError{"is not a string"};
  }
  return {text->data(), text->size()};
}

std::int64_t number_of(const json::value& value) {
  boost::system::error_code error;
  const auto number = value.to_number<std::int64_t>(error);
  if (error) {
    throw ParseError{"is not an integer"};
  }
  return number;
}

/// A token may exceed the integers that a double represents exactly, so writers may use a string.
Token token_of(const json::value& value) {
  if (value.is_string()) {
    const auto text = text_of(value);
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
      throw ParseError{"is not a token"};
    }
    return std::stoull(text);
  }
  boost::system::error_code error;
  const auto token = value.to_number<Token>(error);
  if (error) {
    throw ParseError{"is not a token"};
  }
  return token;
}

LockMode mode_of(const std::string& name) {
  for (const auto mode : all_lock_modes) {
    if (tenure::to_string(mode) == name) {
      return mode;
    }
  }
  throw ParseError{"is not a lock mode"};
}

template <class Enum>
Enum word_of(const json::value& value, const auto& names) {
  const auto word = text_of(value);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) {
      return static_cast<Enum>(i);
    }
  }
  throw ParseError{"has the unknown value '" + word + "'"};
}

template <class Made>
std::vector<Made> list_of(const json::value& value, Made (*make)(const json::value&)) {
  if (!value.is_array()) {
    throw ParseError{"is not a list"};
  }
  std::vector<Made> made;
  for (const auto& element : value.get_array()) {
    made.push_back(make(element));
  }
  return made;
}

Item item_of(const json::value& value) {
  if (!value.is_object()) {
    throw ParseError{"has an element that is not an object"};
  }
  Item item;
  for (const auto& [key, field] : value.get_object()) {
    if (key == "name") {
      item.name = text_of(field);
    } else if (key == "mode") {
      item.mode = mode_of(text_of(field));
    } else if (key == "permits") {
      item.permits = item.permits.value_or(Permits{});
      item.permits->wanted = static_cast<std::uint32_t>(number_of(field));
    } else if (key == "capacity") {
      item.permits = item.permits.value_or(Permits{});
      item.permits->capacity = static_cast<std::uint32_t>(number_of(field));
    } else if (key == "start") {
      item.range = item.range.value_or(Range{});
      item.range->start = text_of(field);
    } else if (key == "end") {
      item.range = item.range.value_or(Range{});
      item.range->end = text_of(field);
    } else {
      throw ParseError{"has the unknown field '" + std::string(key) + "'"};
    }
  }
  if (item.name.empty()) {
    throw ParseError{"has an item without a name"};
  }
  return item;
}

void read_field(Event& event, std::string_view key, const json::value& value) {
  if (key == "kind") {
    event.kind = word_of<Kind>(value, kind_names);
  } else if (key == "at") {
    event.at = number_of(value);
  } else if (key == "client") {
    event.client = text_of(value);
  } else if (key == "owner") {
    event.owner = text_of(value);
  } else if (key == "request") {
    event.request = text_of(value);
  } else if (key == "items") {
    event.items = list_of<Item>(value, item_of);
  } else if (key == "policy") {
    event.policy = word_of<WaitPolicy>(value, policy_names);
  } else if (key == "token") {
    event.token = token_of(value);
  } else if (key == "until") {
    event.until = number_of(value);
  } else if (key == "why") {
    event.why = text_of(value);
  } else if (key == "cycle") {
    event.cycle = list_of<std::string>(value, text_of);
  } else if (key == "resource") {
    event.resource = text_of(value);
  } else if (key == "accepted") {
    event.is_accepted = number_of(value) != 0;
  } else if (key == "watcher") {
    event.watcher = text_of(value);
  } else if (key == "holders") {
    event.holders = list_of<Token>(value, token_of);
  } else if (key == "since") {
    event.since = number_of(value);
  } else if (key == "properties") {
    event.properties = text_of(value);
  } else if (key == "bound") {
    event.bound = number_of(value);
  } else if (key == "ttl_max") {
    event.ttl_max = number_of(value);
  } else {
    throw ParseError{"is unknown"};
  }
}

}  // namespace

std::string_view to_string(Kind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::string to_line(const Event& event) {
  sys::JsonWriter json;
  json.begin_object();
  Fields fields(json);
  fields.number("at", event.at);
  fields.text("kind", to_string(event.kind));
  fields.text("client", event.client);
  fields.text("owner", event.owner);
  fields.text("request", event.request);
  fields.list("items", event.items, write_item);
  if (event.policy != WaitPolicy::wait) {
    fields.text("policy", policy_names[static_cast<std::size_t>(event.policy)]);
  }
  fields.maybe("token", event.token);
  fields.maybe("until", event.until);
  fields.text("why", event.why);
  fields.list("cycle", event.cycle,
              [](sys::JsonWriter& to, const std::string& request) { to.value(request); });
  fields.text("resource", event.resource);
  if (event.kind == Kind::write) {
    fields.number("accepted", event.is_accepted ? 1 : 0);
  }
  fields.text("watcher", event.watcher);
  fields.list("holders", event.holders, [](sys::JsonWriter& to, Token token) { to.value(token); });
  fields.maybe("since", event.since);
  if (event.kind == Kind::history) {
    fields.text("properties", event.properties);
    fields.number("bound", event.bound);
    fields.number("ttl_max", event.ttl_max);
  }
  return json.end_object().take();
}

Result<Event> from_line(std::string_view line) {
  boost::system::error_code error;
  const auto value = json::parse(json::string_view(line.data(), line.size()), error);
  if (error || !value.is_object()) {
    return fail(Errc::invalid_argument, "the line is not a JSON object");
  }
  Event event;
  bool has_kind = false;
  for (const auto& [key, field] : value.get_object()) {
    try {
      read_field(event, std::string_view(key.data(), key.size()), field);
    } catch (const ParseError& wrong) {
      return fail(Errc::invalid_argument, "'" + std::string(key) + "' " + wrong.why);
    }
    has_kind = has_kind || key == "kind";
  }
  if (!has_kind) {
    return fail(Errc::invalid_argument, "'kind' is missing");
  }
  return event;
}

Result<Events> read_lines(std::istream& in) {
  Events events;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) {
      continue;
    }
    auto event = from_line(line);
    if (!event) {
      return fail(Errc::invalid_argument,
                  "line " + std::to_string(number) + ": " + event.error().detail);
    }
    events.push_back(std::move(*event));
  }
  return events;
}

}  // namespace tenure::history
