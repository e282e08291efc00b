#include "cli/items.hpp"

#include <algorithm>
#include <utility>

namespace tenure::cli {
namespace {

v1::Mode to_mode(std::string_view name) {
  constexpr std::pair<std::string_view, v1::Mode> modes[] = {
      {"IS", v1::MODE_INTENTION_SHARED},
      {"IX", v1::MODE_INTENTION_EXCLUSIVE},
      {"S", v1::MODE_SHARED},
      {"U", v1::MODE_UPDATE},
      {"X", v1::MODE_EXCLUSIVE},
      {"SIX", v1::MODE_SHARED_INTENTION_EXCLUSIVE}};
  const auto* const found =
      std::ranges::find(modes, name, &std::pair<std::string_view, v1::Mode>::first);
  return found == std::end(modes) ? v1::MODE_EXCLUSIVE : found->second;
}

v1::Item item_of(const std::string& name, v1::Mode mode) {
  v1::Item item;
  item.set_name(name);
  item.set_mode(mode);
  return item;
}

/// "a..f" is [a, f), "a.." has no end, "..f" begins with the first key.
Result<v1::Item> range_of(const std::string& space, const std::optional<std::string>& text,
                          v1::Mode mode) {
  v1::Item item;
  item.set_name(space);
  item.mutable_keys()->set_mode(mode);
  auto& range = *item.mutable_keys()->mutable_range();
  const auto dots = text ? text->find("..") : std::string::npos;
  if (text && dots == std::string::npos) {
    return fail(Errc::invalid_argument,
                "--range: \"" + *text + "\" is not FROM..TO; either side may be empty");
  }
  if (text) {
    range.set_start(text->substr(0, dots));
    if (const auto end = text->substr(dots + 2); !end.empty()) {
      range.set_end(end);
    }
  }
  return item;
}

/// The node in `mode`, and its ancestors in the matching intention mode. Each node has the whole
/// path as its name, as in Transaction::lock_path().
Result<std::vector<v1::Item>> nodes_of(const std::string& path, std::string_view mode) {
  if (path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string::npos) {
    return fail(Errc::invalid_argument, "--path: \"" + path + "\" has an empty step");
  }
  const bool reads = mode == "IS" || mode == "S";
  const auto ancestors = reads ? v1::MODE_INTENTION_SHARED : v1::MODE_INTENTION_EXCLUSIVE;
  std::vector<v1::Item> items;
  for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    items.push_back(item_of(path.substr(0, end), ancestors));
  }
  items.push_back(item_of(path, to_mode(mode)));
  return items;
}

}  // namespace

Result<std::string> mode_of(const Arguments& arguments) {
  const bool is_shared = arguments.has("--shared");
  const bool is_exclusive = arguments.has("--exclusive");
  const auto mode = arguments.text("--mode");
  if (is_shared && is_exclusive) {
    return fail(Errc::invalid_argument, "--shared and --exclusive exclude each other");
  }
  if (mode && (is_shared || is_exclusive)) {
    return fail(Errc::invalid_argument, "--mode excludes --shared and --exclusive");
  }
  return mode.value_or(is_shared ? "S" : "X");
}

Result<Selection> select_items(const Arguments& arguments, std::string_view mode) {
  const auto space = arguments.text("--space");
  const auto path = arguments.text("--path");
  const auto given = (arguments.words.empty() ? 0 : 1) + (space ? 1 : 0) + (path ? 1 : 0);
  if (given != 1) {
    return fail(Errc::invalid_argument,
                given == 0 ? "no lock is named: give NAME..., --path PATH, or --space SPACE"
                           : "names, --path and --space exclude each other");
  }
  if (arguments.has("--range") && !space) {
    return fail(Errc::invalid_argument, "--range needs --space");
  }
  Selection made{.shown = arguments.words};
  if (path) {
    auto nodes = nodes_of(*path, mode);
    if (!nodes) {
      return std::unexpected(std::move(nodes).error());
    }
    made = {.items = *std::move(nodes), .shown = {*path}};
  } else if (space) {
    auto range = range_of(*space, arguments.text("--range"), to_mode(mode));
    if (!range) {
      return std::unexpected(std::move(range).error());
    }
    made = {.items = {*std::move(range)}, .shown = {*space}};
  } else {
    for (const auto& name : arguments.words) {
      made.items.push_back(item_of(name, to_mode(mode)));
    }
  }
  return made;
}

}  // namespace tenure::cli
