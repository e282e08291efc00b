#include "cli/manual.hpp"

#include <array>
#include <iterator>

#include "cli/manual_parts.hpp"

namespace tenure::cli {
namespace {

constexpr std::array all_remarks{
    Remark{"Environment",
           "  TENURE_URL         where the locks are, if --url does not say it\n"
           "  TENURE_AUTH_TOKEN  who we are, to a tenured that has users: what `tenured token`\n"
           "                     printed; --token-file and the URL win\n"
           "  TENURE_AUTH_FILE   a file with it; TENURE_AUTH_TOKEN wins\n"
           "  NO_COLOR           if it is set and not empty: no colours\n"},
    Remark{"Exit codes",
           "  0    done\n"
           "  1    the answer is no: nothing is held, a check failed, a file is damaged\n"
           "  64   usage: an option, a name or a URL is wrong, or this backend cannot do it\n"
           "  69   no server can be reached, or it takes no more\n"
           "  70   a bug\n"
           "  75   not acquired: somebody else has it (--conflict-exit-code changes this)\n"
           "  77   the server does not allow it\n"
           "  79   the lock was lost, or about to be, while it was needed\n"
           "  126  the command cannot be executed; 127: it was not found\n"
           "  128+n  ended by signal n; `tenure run` passes its command's code on\n"},
};

}  // namespace

const std::vector<Command>& commands() {
  static const auto all = [] {
    std::vector<Command> made;
    for (auto&& part : {lock_commands(), service_commands(), tool_commands()}) {
      made.insert(made.end(), part.begin(), part.end());
    }
    return made;
  }();
  return all;
}

const std::vector<Option>& common_options() {
  static const std::vector<Option> all{
      {"-u,--url", "URL",
       "Where the locks are: tenure://host:port,..., redis://host:port [TENURE_URL, or "
       "tenure://127.0.0.1:7420]"},
      {"--token-file", "FILE",
       "Who we are, to a tenured that has users: a file with the token [TENURE_AUTH_TOKEN, or what "
       "TENURE_AUTH_FILE names]"},
      {"--owner", "TEXT", "Who we are, for people [host, process and a random number]"},
      {"--timeout", "DURATION", "Longest wait for an answer of the server [5s]"},
      {"-o,--output", "FORMAT", "table, json or quiet [table]", "table json quiet"},
      {"-j,--json", "", "The same as --output json"},
  };
  return all;
}

std::span<const Remark> remarks() {
  return all_remarks;
}

std::string_view summary_of_group(std::string_view group) {
  if (group == "cluster") {
    return "Look at the members of a cluster, and change who they are";
  }
  if (group == "lease") {
    return "Look at leases, make them, keep them and end them";
  }
  if (group == "users") {
    return "Tell servers that their users have changed";
  }
  if (group == "fence") {
    return "Ask about fencing tokens";
  }
  return group == "snapshot" ? "Save the state of the server, and look into what was saved" : "";
}

std::vector<std::string_view> names_of(const Option& option) {
  std::vector<std::string_view> names;
  for (auto rest = option.names; !rest.empty();) {
    const auto comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return names;
}

std::string_view key_of(const Option& option) {
  return names_of(option).back();
}

}  // namespace tenure::cli
