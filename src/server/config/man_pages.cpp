#include "server/config/man_pages.hpp"

#include "server/config/command_line.hpp"
#include "server/config/settings.hpp"
#include "server/process/exit_code.hpp"
#include "sys/man_page.hpp"

namespace tenure::server {
namespace {

/// Footer of a page.
std::string source() {
  return "tenure " + std::string(version());
}

/// "[7420; 1 to 100]"
std::string limits_of(const Setting& setting) {
  const auto usual = setting.print(Config{});
  const auto text =
      (usual.empty() ? "none" : usual) + (setting.expected.empty() ? "" : "; " + setting.expected);
  return " [" + text + "]";
}

/// Writes all settings by section. `term(setting)` is the heading of an entry: the flag in one
/// page, the key in the other.
template <class Term>
void each_section(sys::ManPage& page, const Term& term) {
  for (const auto& section : sections()) {
    page.section(section.title);
    for (const auto& setting : settings()) {
      if (setting.section() == section.name) {
        page.term(term(setting), std::string(setting.help) + limits_of(setting));
      }
    }
  }
}

/// tenured(8). The paragraphs repeat what --help has no room for.
std::string daemon_page() {
  const auto from = source();
  sys::ManPage page(
      {.name = "tenured", .section = 8, .source = from, .summary = "the lock service of Tenure"});
  page.section("synopsis")
      .synopsis("tenured", "[OPTIONS]")
      .synopsis("tenured seed", "--from PATH [OPTIONS]")
      .synopsis("tenured token", "")
      .section("description")
      .paragraphs(
          "Lock service with leases and fencing tokens. Runs as a single node, or as a member of a "
          "cluster of three or five members. Clients connect over gRPC; HTTP serves a dashboard, "
          "metrics and JSON.\n\n"
          "Every setting is an option, an environment variable and a key of the file "
          "tenure.toml(5). The command line overrides the environment, which overrides the "
          "file.\n\n"
          "tenured seed creates the data directory of a member of a new cluster, or without "
          "--members that of a single node, from an unused data directory, a backup of one, or a "
          "file of tenure-snapshot-save(1), and exits. New fencing tokens are larger than all "
          "earlier ones. Unless the state is the newest (--current), no lock is granted for the "
          "longest TTL (--longest-ttl), and holds that no client confirms end. --without-holds "
          "drops all leases, holds and waits.\n\n"
          "tenured token generates a token for a user, prints it, and exits.")
      .section("options")
      .term("-c, --config FILE", "Read settings from this file")
      .term("--print-config", "Print the settings that would be used, as TOML, and exit")
      .term("--print-man PAGE", "Print a manual page, tenured or tenure.toml, and exit")
      .term("-h, --help", "Print the options and exit")
      .term("-V, --version", "Print the version and exit");
  each_section(page, [](const Setting& setting) {
    return setting.flag() + (setting.type == ValueType::toggle ? "" : " " + value_name(setting));
  });
  return page.section("signals")
      .paragraphs(
          "SIGTERM and SIGINT stop the server: a leader transfers the leadership, requests in "
          "flight "
          "are answered, and the locks stay in the data directory. SIGHUP reloads users and "
          "certificates. Without either, SIGHUP stops a server that runs on a terminal.")
      .section("environment")
      .term("TENURE_SECTION_NAME",
            "Value of the setting section.name: TENURE_LISTEN_GRPC is listen.grpc, "
            "TENURE_NODE_DATA_DIR is node.data_dir. An empty variable counts as unset. Other "
            "variables that begin with TENURE_ are ignored with a warning, except those of "
            "tenure(1)")
      .term("TENURE_AUTH_USERS_FILE",
            "Value of auth.file. TENURE_AUTH_FILE is the token file of tenure(1)")
      .term("NOTIFY_SOCKET, WATCHDOG_USEC", "Set by systemd: see sd_notify(3)")
      .term("NO_COLOR", "Print the log without colours")
      .section("exit status")
      .term("0", "stopped by a signal")
      .term("64", "invalid command line")
      .term("69", "an address cannot be bound")
      .term("70", "internal error: keep the log and the data directory for a bug report")
      .term("74", "the data directory is unusable, or the disk failed")
      .term("78", "invalid configuration: file or environment")
      .section("files")
      .term("/etc/tenure/tenure.toml", "settings of the service, by convention")
      .term("/var/lib/tenure", "its data directory, by convention")
      .see_also("tenure.toml", 5)
      .see_also("tenure", 1)
      .see_also("libtenure", 3)
      .text();
}

/// tenure.toml(5).
std::string file_page() {
  const auto from = source();
  sys::ManPage page({.name = "tenure.toml",
                     .section = 5,
                     .source = from,
                     .summary = "settings of the lock service tenured"});
  page.section("description")
      .paragraphs(
          "TOML file for tenured --config. Each setting below is section.name: the key `name` in "
          "the "
          "table [section]. Counts are integers, switches are booleans, all other values are "
          "strings: sizes such as \"64 KiB\", durations such as \"300ms\". An unknown key is an "
          "error. Defaults and valid ranges are in brackets.\n\n"
          "An environment variable overrides a setting: TENURE_LISTEN_GRPC is listen.grpc. "
          "tenured --print-config prints the effective settings in this format.");
  each_section(page, [](const Setting& setting) { return std::string(setting.key); });
  return page.section("example")
      .verbatim("[node]\ndata_dir = \"/var/lib/tenure\"\n\n[listen]\ngrpc = \"127.0.0.1:7420\"\n")
      .see_also("tenured", 8)
      .text();
}

}  // namespace

std::optional<std::string> man_page(std::string_view name) {
  if (name == "tenured") {
    return daemon_page();
  }
  return name == "tenure.toml" ? std::optional(file_page()) : std::nullopt;
}

}  // namespace tenure::server
