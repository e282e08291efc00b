#include "server/config/man_pages.hpp"

#include "server/config/command_line.hpp"
#include "server/config/settings.hpp"
#include "server/process/exit_code.hpp"
#include "sys/man_page.hpp"

namespace tenure::server {
namespace {

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

std::string daemon_page() {
  const auto from = source();
  sys::ManPage page(
      {.name = "tenured", .section = 8, .source = from, .summary = "the lock service of Tenure"});
  page.section("synopsis")
      .call("tenured", "[OPTIONS]")
      .call("tenured seed", "--from PATH [OPTIONS]")
      .call("tenured token", "")
      .section("description")
      .paragraphs(
          "Keeps named locks for processes on many machines, with leases and fencing tokens: "
          "alone, "
          "or as one of three or five members of a cluster. Clients come by gRPC; HTTP has a "
          "dashboard, metrics and JSON.\n\n"
          "Every setting is an option, and can be given in a file as well: tenure.toml(5). What is "
          "on the command line counts.\n\n"
          "With seed it makes the data directory of a member of a new cluster, or without "
          "--members "
          "of a single node, out of a data directory that is not in use, a backup of it, or a file "
          "of tenure-snapshot-save(1), and exits. Fencing tokens go on beyond all that were "
          "given. Unless the state is the newest (--current), no lock is granted for the longest "
          "ttl (--longest-ttl), and holds end that no client confirms. --without-holds drops all "
          "leases, holds and waits.\n\n"
          "With token it makes a secret for a user, prints it, and exits.")
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
          "SIGTERM and SIGINT stop it: a leader hands over, what is in flight is answered, and the "
          "locks stay in the data directory. SIGHUP makes it read its users again; without users "
          "it "
          "stops it, if it runs on a terminal.")
      .section("exit status")
      .term("0", "stopped as asked")
      .term("64", "the command line cannot be understood")
      .term("69", "an address cannot be bound")
      .term("70", "a bug: keep the log and the data directory")
      .term("74", "the data directory cannot be used, or the disk failed")
      .term("78", "the configuration is wrong")
      .section("files")
      .term("/etc/tenure/tenure.toml", "settings of the service, by convention")
      .term("/var/lib/tenure", "its data directory, by convention")
      .see_also("tenure.toml", 5)
      .see_also("tenure", 1)
      .see_also("libtenure", 3)
      .text();
}

std::string file_page() {
  const auto from = source();
  sys::ManPage page({.name = "tenure.toml",
                     .section = 5,
                     .source = from,
                     .summary = "settings of the lock service tenured"});
  page.section("description")
      .paragraphs(
          "A TOML file that tenured --config reads. Each setting below is section.name: a key "
          "`name` in the table [section]. Counts are integers, switches booleans, everything else "
          "strings; sizes are like \"64 KiB\", durations like \"300ms\". A key that is not known "
          "is "
          "an error. In brackets: what holds if nothing is said, and what is allowed.\n\n"
          "tenured --print-config prints the settings in force as such a file.");
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
